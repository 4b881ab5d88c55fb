# SPDX-License-Identifier: Apache-2.0
"""Tests of sass.py and slots.py on a small kernel, whose slots can be counted by hand."""
import unittest

import sass
import slots

# A tile loop of three loops: copies (two ways), norms (one load at a time), weights. A call may be skipped.
KERNEL = """
	Function : _Z12small_kernelv
        /*0000*/                   MOV R1, RZ ;                      /* 0x0000000000017882 */
        /*0010*/                   IADD3 R1, R1, 0x1, RZ ;
        /*0020*/               @P3 BRA 0x50 ;
        /*0030*/                   LDGSTS.E.128 [R2], desc[UR4][R4.64] ;
        /*0040*/                   BRA 0x70 ;
        /*0050*/                   LDGSTS.E.128 [R2], desc[UR4][R4.64] ;
        /*0060*/                   IADD3 R2, R2, 0x1, RZ ;
        /*0068*/                   IADD3 R4, R4, 0x1, RZ ;
        /*0070*/               @P0 BRA 0x20 ;
        /*0078*/                   MOV R6, RZ ;
        /*0080*/                   LDS R6, [R7] ;
        /*0090*/               @P1 BRA 0x80 ;
        /*00a0*/                   STS [R7], R6 ;
        /*00b0*/               @P1 BRA 0x78 ;
        /*00c0*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*00d0*/              @!P2 BRA 0xf0 ;
        /*00e0*/                   CALL.REL.NOINC 0x170 ;
        /*00f0*/              @!PT LDS RZ, [RZ] ;
        /*0100*/                   LDS.128 R8, [R7] ;
        /*0110*/                   MUFU.EX2 R8, R8 ;
        /*0120*/                   MUFU.EX2 R9, R9 ;
        /*0130*/               @P1 BRA 0x100 ;
        /*0140*/               @P0 BRA 0x10 ;
        /*0150*/                   EXIT ;
        /*0160*/                   BRA 0x160 ;
        /*0170*/                   MUFU.RCP R8, R8 ;
        /*0180*/                   RET.REL.NODEC R2 0x0 ;
        /*0190*/                   NOP ;
"""
ROW = {"kind": "small", "form": "kernel", "symbol": "small_kernel", "threads": 128, "shared_bytes": 0, "weights": 8,
       "stages": [{"copy": 2, "norm": 0.5, "weigh": 4}], "loads": 2}


def code():
    return sass.functions(KERNEL)["_Z12small_kernelv"]


class Sass(unittest.TestCase):
    def setUp(self):
        self.flow = sass.Flow(code())
        (self.tile,) = self.flow.tile_loops()
        self.of_kind = {self.flow.kind(loop): loop for loop in self.tile.inner}

    def test_reads_instructions(self):
        last = code()[-1]
        self.assertEqual((last.address, last.opcode, last.operands), (0x180, "RET.REL.NODEC", "R2 0x0"))
        self.assertEqual((code()[2].predicate, code()[2].target), ("@P3", 0x50))

    def test_finds_the_loops_of_a_tile(self):
        self.assertEqual(sorted(self.of_kind), ["copy", "norm", "weigh"])

    def test_takes_the_cheapest_way_or_the_dearest(self):
        self.assertEqual(self.flow.ways(self.of_kind["copy"], {}, ()), (4, 1, 0))
        self.assertEqual(self.flow.ways(self.of_kind["copy"], {}, (), dearest=True), (5, 1, 0))
        self.assertEqual(self.flow.ways(self.of_kind["weigh"], {}, ()), (4, 1, 2))

    def test_a_loop_inside_runs_as_often_as_its_loads_say(self):
        norm = self.of_kind["norm"]
        self.assertEqual(self.flow.ways(norm, {}, ()), (5, 2, 0))
        self.assertEqual(self.flow.ways(norm, {}, (), loads=3), (9, 4, 0))

    def test_a_way_passes_what_is_wanted(self):
        kinds = {loop.header: kind for kind, loop in self.of_kind.items()}
        # IADD3, BAR, BRA, the load that is off, BRA
        self.assertEqual(self.flow.ways(self.tile, kinds, list(kinds.values())), (5, 0, 0))
        # and the call with what it calls
        wanted = [*kinds.values(), "^CALL"]
        self.assertEqual(self.flow.ways(self.tile, kinds, wanted), (8, 0, 0))
        self.assertIsNone(self.flow.ways(self.tile, kinds, [*kinds.values(), "^HMMA"]))


class Slots(unittest.TestCase):
    def test_counts_a_tile(self):
        used, memory, unit, length = slots.count_tile(ROW, code())
        # own 5, copies 2 x 5, norms 0.5 x 7, weights 4 x 4
        self.assertAlmostEqual(used, (5 + 2 * 5 + 0.5 * 7 + 4 * 4) / 8)
        self.assertAlmostEqual(memory, (2 * 1 + 0.5 * 3 + 4 * 1) / 8)
        self.assertAlmostEqual(unit, 4 * 2 / 8)
        self.assertEqual(length, 22)

    def test_a_law_is_counted_along_its_own_way(self):
        text = KERNEL.replace("/*0120*/                   MUFU.EX2 R9, R9", """/*0112*/               @P4 BRA 0x120 ;
        /*0114*/                   MUFU.SQRT R9, R9 ;
        /*0116*/                   FMUL R9, R9, 2 ;
        /*0120*/                   MUFU.EX2 R9, R9""")
        (branching,) = sass.functions(text).values()
        gaussian, laplace = (slots.count_tile(ROW | {"law": law}, branching) for law in ("gaussian", "laplace"))
        self.assertAlmostEqual(laplace[0] - gaussian[0], 4 * 2 / 8)
        self.assertAlmostEqual(laplace[2] - gaussian[2], 4 * 1 / 8)
        with self.assertRaisesRegex(ValueError, "no way through the loop of the kind weigh"):
            slots.count_tile(ROW | {"law": "epanechnikov"}, branching)

    def test_projections_run_as_often_as_their_products_say(self):
        text = KERNEL.replace("/*0078*/                   MOV R6, RZ", "/*0078*/                   F2FP.F16.F32 R6, R6, R7")
        text = text.replace("/*0080*/                   LDS R6, [R7]", "/*0080*/                   HMMA.16816.F32 R6, R7, R8, R6")
        (projecting,) = sass.functions(text).values()
        row = ROW | {"stages": [{"copy": 2, "project": 0.5, "weigh": 4}], "project_products": 3}
        # F2FP, three times HMMA and BRA, STS, BRA
        self.assertAlmostEqual(slots.count_tile(row, projecting)[0], (5 + 2 * 5 + 0.5 * 9 + 4 * 4) / 8)
        row["project_products"] = 4
        self.assertAlmostEqual(slots.count_tile(row, projecting)[0], (5 + 2 * 5 + 0.5 * 11 + 4 * 4) / 8)

    def test_the_special_function_unit_binds(self):
        self.assertAlmostEqual(slots.predicted(4, 2) / slots.CLOCKS, 8)
        self.assertAlmostEqual(slots.predicted(10, 0) / slots.CLOCKS, 12.8)

    def test_exponentials_have_to_make_the_weights(self):
        with self.assertRaisesRegex(ValueError, "4 steps of 2 EX2 are not 16 weights"):
            slots.count_tile(ROW | {"weights": 16}, code())

    def test_a_loop_that_is_missing_is_said(self):
        stage = {"copy": 1, "pairs": 1, "weigh": 4}
        with self.assertRaisesRegex(ValueError, "no way through the tile loop with copy, weigh, pairs"):
            slots.count_tile(ROW | {"stages": [stage]}, code())

    def test_every_figure_can_be_too_dear(self):
        row = ROW | {"slots": 3.8, "shared": 0.8, "unit": 1, "code": 20, "registers": 40, "blocks": 4}
        same = {key: row.get(key, 0) for key in slots.UNITS}
        self.assertEqual(slots.compare(row, same), ([], []))
        for key in slots.UNITS:
            step = -1 if key == "blocks" else 1
            dearer, cheaper = slots.compare(row, same | {key: same[key] + step})
            self.assertEqual((len(dearer), len(cheaper)), (1, 0), key)
            self.assertIn(slots.UNITS[key], dearer[0])
        self.assertEqual([len(x) for x in slots.compare(row, same | {"slots": 3})], [0, 1])

    def test_local_memory_is_a_spill(self):
        text = KERNEL.replace("NOP", "STL [R1], R2")
        (spilling,) = sass.functions(text).values()
        self.assertEqual(slots.count(ROW, spilling, 40, 0)["spills"], 1)
        self.assertEqual(slots.count(ROW, code(), 40, 8)["spills"], 8)

    def test_ordered_loads_are_found(self):
        self.assertEqual(slots.ordered_loads(code()), 0)
        for opcode, count in (("LDG.E.128.STRONG.SM", 1), ("LDG.E.64.STRONG.SYS", 1), ("LDG.E.128.CONSTANT", 0),
                              ("LDG.E", 0), ("LD.E.STRONG.GPU", 0)):
            (loading,) = sass.functions(KERNEL.replace("NOP", f"{opcode} R4, desc[UR4][R2.64]")).values()
            self.assertEqual(slots.ordered_loads(loading), count, opcode)

    def test_blocks_on_a_multiprocessor(self):
        self.assertEqual(slots.blocks_on_multiprocessor(168, 128, 0), 3)
        self.assertEqual(slots.blocks_on_multiprocessor(32, 128, 101344), 2)
        self.assertEqual(slots.blocks_on_multiprocessor(16, 128, 0), 16)

    def test_reads_resources(self):
        text = " Function _Z5smallv:\n  REG:47 STACK:8 SHARED:0 LOCAL:0 CONSTANT[0]:680\n"
        self.assertEqual(slots.resources(text), {"_Z5smallv": (47, 8)})

    def test_limit_is_that_of_the_bench_program(self):
        plain, pairs = {"kind": "plain"}, {"kind": "conditional"}
        for row, d_k, queries, value in ((plain, 4, 64, 4.18), (plain, 8, 1024, 4.18), (plain, 16, 64, 4.18),
                                         (plain, 32, 64, 2.16), (plain, 64, 64, 0.81), (plain, 64, 1024, 1.53), (pairs, 4, 64, 2.91),
                                         (pairs, 8, 1024, 4.06)):
            self.assertAlmostEqual(slots.limit(row, d_k, queries) / 1e12, value, 2)


if __name__ == "__main__":
    unittest.main()
