# SPDX-License-Identifier: Apache-2.0
"""Machine code of kernels as `cuobjdump -sass` prints it: instructions, blocks, loops, and the issue
slots of a cheapest way through a loop."""
import re

FUNCTION = re.compile(r"^\s*Function : (\S+)")
INSTRUCTION = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
TARGET = re.compile(r"0x[0-9a-f]+$")


class Instruction:
    def __init__(self, address, predicate, opcode, operands):
        self.address = address
        self.predicate = predicate
        self.opcode = opcode
        self.base = opcode.split(".")[0]
        self.operands = operands
        target = TARGET.search(operands)
        jumps = self.base in ("BRA", "CALL") or opcode.startswith("WARPSYNC.COLLECTIVE")
        self.target = int(target.group(), 16) if target and jumps else None


def functions(text):
    """{name: instructions} of the text; padding after the last jump is left out."""
    found = {}
    code = None
    for line in text.splitlines():
        if match := FUNCTION.match(line):
            code = found.setdefault(match.group(1), [])
        elif code is not None and (match := INSTRUCTION.search(line)):
            address, predicate, opcode, operands = match.groups()
            if opcode != "NOP":
                code.append(Instruction(int(address, 16), predicate, opcode, operands))
    return found


class Loop:
    """A natural loop: the first block, all blocks, and the loops directly inside."""

    def __init__(self, header, blocks):
        self.header = header
        self.blocks = blocks
        self.inner = []


class Flow:
    """Blocks of a function, its loops, and what a way through them costs."""

    def __init__(self, code):
        self.at = {i.address: n for n, i in enumerate(code)}
        leaders = {0}
        for n, i in enumerate(code):
            ends = i.base in ("BRA", "EXIT", "RET", "BRX", "JMP")
            if ends and n + 1 < len(code):
                leaders.add(n + 1)
            if i.target is not None:
                leaders.add(self.index(i.target, len(code)))
        starts = sorted(n for n in leaders if n < len(code))
        self.blocks = [code[a:b] for a, b in zip(starts, starts[1:] + [len(code)])]
        block_of = {a: n for n, a in enumerate(starts)}
        self.next = []
        for n, block in enumerate(self.blocks):
            last = block[-1]
            goes_on = not (last.base in ("BRA", "EXIT", "RET", "BRX", "JMP") and self.always(last))
            successors = [n + 1] if goes_on and n + 1 < len(self.blocks) else []
            if last.base == "BRA":
                successors.append(block_of.get(self.index(last.target, len(code)), n))
            self.next.append(sorted(set(successors)))
        self.cost_of_call = {}
        for i in code:
            if i.base == "CALL" and i.target is not None:
                start = self.index(i.target, len(code))
                ends = (n for n in range(start, len(code)) if code[n].base == "RET")
                self.cost_of_call[i.target] = next(ends, len(code)) - start + 1
        self.loops = self.find_loops()

    def index(self, address, end):
        return self.at.get(address, end)

    @staticmethod
    def always(i):
        """True where the jump is taken by every thread: no predicate, before it or in it."""
        return i.predicate is None and not re.match(r"!?U?P\d|.*\bP\d,", i.operands) and ".DIV" not in i.opcode

    def slots(self, n):
        """Issue slots of a block; a call costs what is called, in full."""
        return sum(1 + self.cost_of_call.get(i.target, 0) * (i.base == "CALL") for i in self.blocks[n])

    def dominators(self):
        order, seen, stack = [], {0}, [(0, iter(self.next[0]))]
        while stack:
            node, rest = stack[-1]
            for successor in rest:
                if successor not in seen:
                    seen.add(successor)
                    stack.append((successor, iter(self.next[successor])))
                    break
            else:
                order.append(node)
                stack.pop()
        order.reverse()
        before = {n: [] for n in order}
        for n in order:
            for successor in self.next[n]:
                before[successor].append(n)
        of = {n: None for n in order}
        of[0] = {0}
        changed = True
        while changed:
            changed = False
            for n in order[1:]:
                known = [of[p] for p in before[n] if of[p] is not None]
                new = set.intersection(*known) | {n}
                if new != of[n]:
                    of[n] = new
                    changed = True
        return of, before

    def find_loops(self):
        """Outermost loops, by address."""
        of, before = self.dominators()
        bodies = {}
        for n in of:
            for header in self.next[n]:
                if header in of[n]:
                    body = bodies.setdefault(header, {header})
                    stack = [n]
                    while stack:
                        block = stack.pop()
                        if block not in body:
                            body.add(block)
                            stack.extend(before[block])
        loops = [Loop(h, b) for h, b in sorted(bodies.items())]
        outermost = []
        for loop in loops:
            around = [o for o in loops if loop.header in o.blocks and len(o.blocks) > len(loop.blocks)]
            (min(around, key=lambda o: len(o.blocks)).inner if around else outermost).append(loop)
        return outermost

    def instructions(self, loop):
        return [i for n in sorted(loop.blocks) for i in self.blocks[n]]

    def ops(self, loop, opcode):
        return sum(i.opcode.startswith(opcode) for i in self.instructions(loop))

    def ways(self, loop, kinds, wanted, loads=None, dearest=False, counted="LDS"):
        """Slots, shared-memory instructions and those of the special function unit of the cheapest way
        once through a loop, from its first block back to it. `kinds` names the loops inside by header; those of a kind in `wanted` are passed,
        each kind once, at no cost; others with a kind are not entered. Loops without a kind run as often as
        makes the instructions `counted` of the way `loads`, where given. `wanted` may also hold patterns of
        instructions that the way has to pass. With `dearest` the most expensive way. None where there is
        no such way."""
        sign = -1 if dearest else 1

        def lower(table, state, cost):
            if state not in table or sign * cost[0] < sign * table[state][0]:
                table[state] = cost

        inside = {}
        for inner in loop.inner:
            for block in inner.blocks:
                inside[block] = inner
        order = self.order(loop, inside)
        start = (frozenset(), 0)
        best = {loop.header: {start: (0, 0, 0)}}
        done = None
        for node in order:
            inner = inside.get(node)
            states = best.get(node, {})
            out = {}
            if inner is None:
                block = self.blocks[node]
                cost = (self.slots(node), sum(shared(i) for i in block), sum(i.base == "MUFU" for i in block))
                passed = frozenset(w for w in wanted if w not in KINDS and any(
                    re.search(w, f"{i.opcode} {i.operands}") for i in block))
                load = sum(i.base == counted and i.predicate != "@!PT" for i in block)
                for (seen, work), spent in states.items():
                    lower(out, (seen | passed, work + load), add(spent, cost))
                leaving = self.next[node]
            else:
                kind = kinds.get(inner.header)
                if kind is None:
                    body = self.ways(inner, {}, ())
                    load = sum(i.base == counted for i in self.instructions(inner))
                    for (seen, work), spent in states.items():
                        for times in range(1, (loads - work) // load + 1 if loads and load else 2):
                            lower(out, (seen, work + times * load), add(spent, [times * cost for cost in body]))
                elif kind in wanted:
                    for (seen, work), spent in states.items():
                        if kind not in seen:
                            lower(out, (seen | {kind}, work), spent)
                leaving = sorted({s for b in inner.blocks for s in self.next[b] if s not in inner.blocks})
            for successor in leaving:
                if successor == loop.header:
                    for (seen, work), spent in out.items():
                        if seen >= frozenset(wanted) and (loads is None or work == loads):
                            found = {None: done} if done else {}
                            lower(found, None, spent)
                            done = found[None]
                elif successor in loop.blocks:
                    target = best.setdefault(inside[successor].header if successor in inside else successor, {})
                    for state, spent in out.items():
                        if loads is None:
                            state = (state[0], 0)
                        lower(target, state, spent)
        return done

    def order(self, loop, inside):
        """Blocks of a loop, inner loops as their first block, each after all that lead to it."""
        done, seen = [], {loop.header}
        stack = [(loop.header, iter(self.leaving(loop, inside, loop.header)))]
        while stack:
            node, rest = stack[-1]
            for successor in rest:
                if successor not in seen:
                    seen.add(successor)
                    stack.append((successor, iter(self.leaving(loop, inside, successor))))
                    break
            else:
                done.append(node)
                stack.pop()
        return done[::-1]

    def leaving(self, loop, inside, node):
        inner = inside.get(node)
        successors = self.next[node] if inner is None else [
            s for b in sorted(inner.blocks) for s in self.next[b] if s not in inner.blocks]
        return [inside[s].header if s in inside else s
                for s in successors if s in loop.blocks and s != loop.header]

    def kind(self, loop):
        """What a loop inside a tile loop does, None for one that is part of such work."""
        for opcode, kind in (("LDGSTS", "copy"), ("MUFU.EX2", "weigh")):
            if self.ops(loop, opcode):
                return kind
        if self.ops(loop, "F2FP"):
            return "project" if self.ops(loop, "HMMA") else "split" if self.ops(loop, "LDS.128") else "repair"
        if self.ops(loop, "STS"):
            return "move" if self.ops(loop, "STS.128") and not self.ops(loop, "FFMA") else "norm"
        return "pairs" if (self.ops(loop, "FFMA") or self.ops(loop, "HMMA")) and self.ops(loop, "LDS") else None

    def tile_loops(self):
        """Outermost loops with an EX2 in a loop inside."""
        return [loop for loop in self.loops if any(self.kind(i) == "weigh" for i in loop.inner)]


KINDS = ("copy", "norm", "split", "project", "move", "weigh", "pairs", "repair")


def shared(i):
    """True for an instruction that reads or writes shared memory."""
    return i.base in ("LDS", "STS", "LDSM", "STSM", "ATOMS", "LDGSTS") and i.predicate != "@!PT"


def add(a, b):
    return tuple(x + y for x, y in zip(a, b))

