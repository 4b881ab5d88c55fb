// SPDX-License-Identifier: Apache-2.0
#include "tools/report/style.h"

namespace headlab::tools {

// Colours c0 .. c6 are those of Okabe and Ito (2008, Color Universal Design), black and white
// changing places; yellow takes the place of blue, which is too dark there, on a dark page.
const char* const report_style = R"(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1b1b;--soft:#595959;--rule:#8a8a8a;--grid:#e4e4e4;
--zone:#d9ecf9;--c0:#000;--c1:#0072b2;--c2:#e69f00;--c3:#009e73;--c4:#d55e00;--c5:#cc79a7;--c6:#56b4e9}
@media (prefers-color-scheme:dark){:root{--bg:#16181c;--fg:#ececec;--soft:#b4b4b4;--rule:#8d8d8d;--grid:#33363c;
--zone:#22384a;--c0:#fff;--c1:#56b4e9;--c4:#ff7a2e;--c6:#f0e442}}
body{margin:0 auto;padding:1rem;max-width:50rem;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,"Liberation Sans",Arial,sans-serif;overflow-wrap:break-word}
h1,h2,h3{line-height:1.25}h1{font-size:1.6rem}h2{font-size:1.3rem;border-bottom:1px solid var(--rule);margin-top:2.5rem}
h3{font-size:1.05rem;margin-bottom:.3rem}dt{font-weight:600}dd{margin:0 0 .5rem 1.5rem}dd p{margin:0}
figure{margin:1.5rem 0}figcaption{margin-top:.4rem}.note{color:var(--soft);font-size:.9rem}
.scroll{overflow-x:auto}svg{display:block;width:100%;min-width:34rem;height:auto;font-size:12px}
table{border-collapse:collapse;font-size:.85rem;margin:.5rem 0}caption{text-align:left;color:var(--soft);white-space:nowrap}
th,td{border:1px solid var(--rule);padding:.2rem .45rem;text-align:left;vertical-align:top}
thead th{background:var(--grid)}td ul{margin:0;padding-left:1rem}td p{margin:.3rem 0}.claims td{width:30%}tbody th{font-weight:400}
code,pre{font:13px/1.45 ui-monospace,"Liberation Mono",monospace}pre{white-space:pre-wrap;border:1px solid var(--rule);padding:.6rem}
summary{cursor:pointer;color:var(--soft);font-size:.9rem}a{color:var(--c1)}
text{fill:var(--fg)}.soft{fill:var(--soft)}.strong{font-weight:600}.small{font-size:11px}
.halo{paint-order:stroke;stroke:var(--bg);stroke-width:3px;stroke-linejoin:round}
.c0{--k:var(--c0)}.c1{--k:var(--c1)}.c2{--k:var(--c2)}.c3{--k:var(--c3)}.c4{--k:var(--c4)}.c5{--k:var(--c5)}.c6{--k:var(--c6)}
.line,.theory,.target,.whisker{fill:none;stroke:var(--k);stroke-width:1.8}
.line.c1{stroke-dasharray:9 3}.line.c2{stroke-dasharray:3 3}.line.c3{stroke-dasharray:9 3 3 3}.line.c4{stroke-dasharray:14 4}
.theory{stroke-width:1.3;stroke-dasharray:1 3;stroke-linecap:round}.target{stroke-width:1.2;stroke-dasharray:6 4}
.whisker{stroke-width:2}.thin{stroke-width:1;stroke-opacity:.6}.band{fill:var(--k);fill-opacity:.22}.area{fill:var(--k);stroke:var(--bg);stroke-width:.6}
.mark{fill:var(--k);stroke:var(--bg);stroke-width:.8}.hollow{fill:var(--bg);stroke:var(--k);stroke-width:1.6}
.hatch{fill:none;stroke:var(--bg);stroke-width:1;stroke-opacity:.75}.zone{fill:var(--zone)}
.axis,.frame{fill:none;stroke:var(--rule)}.frame{stroke-width:.6}.grid{stroke:var(--grid)}
.cell{fill:none;stroke:var(--k);stroke-width:1;shape-rendering:crispEdges}.beyond{--k:var(--rule)}.key{stroke-width:12}
@media print{@page{size:A4;margin:15mm}
:root{color-scheme:light;--bg:#fff;--fg:#000;--soft:#444;--rule:#8a8a8a;--grid:#e4e4e4;--zone:#d9ecf9;
--c0:#000;--c1:#0072b2;--c2:#e69f00;--c3:#009e73;--c4:#d55e00;--c5:#cc79a7;--c6:#56b4e9}
body{max-width:none;padding:0;font-size:10.5pt}svg{min-width:0}.scroll{overflow:visible}
figure,tr,dt,pre{break-inside:avoid}h2,h3{break-after:avoid}nav,details{display:none}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)";

}  // namespace headlab::tools
