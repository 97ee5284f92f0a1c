"""tools/mutate, the part after set-up. See there; results go to build/mutate/results.tsv as they come."""

import argparse
import difflib
import filecmp
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from mutants import KINDS, find_mutants

FAST = "^(unit|property|golden)$"
COUNTED = ("killed", "survived")
PARTS = ("sim", "hw_models", "calibration", "reports", "tools", "tests", "scenarios")
GIB = 1 << 30


def arguments():
    parser = argparse.ArgumentParser(prog="tools/mutate", description="How many planted faults do the tests notice?")
    parser.add_argument("root", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=100, help="mutants that compile (default 100)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default 1)")
    parser.add_argument("--threshold", type=float, default=80.0, help="percent killed below which to fail (default 80)")
    parser.add_argument("--resume", action="store_true", help="go on with the results of the last run of this seed")
    parser.add_argument("--list", action="store_true", help="show the mutants and plant none")
    return parser.parse_args()


def copy_tree(root, tree):
    """Brings `tree` to the state of `root`, touching only what differs, so that its build stays incremental."""
    wanted = set()
    names = [p for p in root.iterdir() if p.is_file()] + [root / part for part in PARTS if (root / part).exists()]
    for top in names:
        for source in [top] if top.is_file() else sorted(p for p in top.rglob("*") if p.is_file()):
            relative = source.relative_to(root)
            if "__pycache__" in relative.parts or "node_modules" in relative.parts:
                continue
            wanted.add(relative)
            target = tree / relative
            if not target.exists() or not filecmp.cmp(source, target, shallow=False):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)
                shutil.copymode(source, target)
    for part in PARTS:
        for old in (tree / part).rglob("*"):
            if old.is_file() and old.relative_to(tree) not in wanted:
                old.unlink()


def all_mutants(root, seed):
    """Every mutant, in the seeded order in which they are tried: the kinds take turns, so that each is represented."""
    by_kind = {kind: [] for kind in KINDS}
    for top in ("sim", "hw_models"):
        for path in sorted((root / top).rglob("*.cpp")):
            relative = path.relative_to(root).as_posix()
            for mutant in find_mutants(relative, path.read_text()):
                by_kind[mutant.kind].append(mutant)
    generator = random.Random(seed)
    queues = []
    for kind in KINDS:
        generator.shuffle(by_kind[kind])
        queues.append(by_kind[kind])
    order = []
    for turn in range(max((len(queue) for queue in queues), default=0)):
        order += [queue[turn] for queue in queues if turn < len(queue)]
    return order


def limits():
    # A mutant may allocate or write without end.
    resource.setrlimit(resource.RLIMIT_AS, (8 * GIB, 8 * GIB))
    resource.setrlimit(resource.RLIMIT_FSIZE, (GIB, GIB))


def run(command, folder, log, timeout=None, limited=False):
    """The exit status; "timeout" when it ran too long, with everything it started ended."""
    with open(log, "ab") as out:
        child = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                 start_new_session=True, preexec_fn=limits if limited else None)
        try:
            return child.wait(timeout)
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


class Bench:
    """A copy of the tree that is built and tested with one fault at a time."""

    def __init__(self, root, jobs):
        self.folder = root / "build" / "mutate"
        self.tree = self.folder / "tree"
        self.build = self.tree / "build" / "dev"
        self.log = self.folder / "log.txt"
        self.jobs = str(jobs)
        self.timeout = None
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log.write_bytes(b"")
        copy_tree(root, self.tree)

    def compile(self, target):
        return run(["cmake", "--build", self.build, "-j", self.jobs, "--target", target], self.tree, self.log)

    def test(self, folder):
        command = ["ctest", "--test-dir", folder, "-L", FAST, "-j", self.jobs, "--stop-on-failure", "--timeout", "60"]
        return run(command, self.tree, self.log, self.timeout, limited=True)

    def baseline(self):
        """Builds the tree as it is; its tests must pass, and tell how long they take."""
        # Warnings are no errors here: a mutant that leaves a variable unused must reach the tests.
        configure = ["cmake", "--preset", "dev", "-DULYSIM_WERROR=OFF"]
        if run(configure, self.tree, self.log) != 0 and run(configure + ["--fresh"], self.tree, self.log) != 0:
            return "does not configure"
        if self.compile("all") != 0:
            return "does not build"
        begin = time.monotonic()
        if self.test(self.build) != 0:
            return "fails its own tests"
        self.timeout = max(60.0, 5 * (time.monotonic() - begin))
        return None

    def judge(self, mutant):
        """First the tests of the mutant's own module, which are soon built; only survivors meet all the others."""
        path = self.tree / mutant.file
        original = path.read_text()
        path.write_text(original[:mutant.begin] + mutant.after + original[mutant.end:])
        try:
            module = "tests/" + Path(mutant.file).parent.name
            if (self.tree / module / "CMakeLists.txt").exists():
                if self.compile("%s/all" % module) != 0:
                    return "does-not-compile"
                if self.test(self.build / module) != 0:
                    return "killed"
            if self.compile("all") != 0:
                return "does-not-compile"
            return "survived" if self.test(self.build) == 0 else "killed"
        finally:
            path.write_text(original)


def key_of(mutant):
    return "%s:%d:%d:%s" % (mutant.file, mutant.line, mutant.begin, mutant.after.strip())


def difference(root, mutant):
    text = (root / mutant.file).read_text()
    changed = text[:mutant.begin] + mutant.after + text[mutant.end:]
    lines = difflib.unified_diff(text.splitlines(), changed.splitlines(), lineterm="", n=1)
    return "\n".join("    " + line for line in list(lines)[2:])


def read_results(path, seed):
    """Verdicts of an earlier run; a line torn by a kill is skipped."""
    known = {}
    if path.exists():
        for line in path.read_text().splitlines()[1:]:
            fields = line.split("\t")
            if len(fields) == 5 and fields[0] == str(seed):
                known[fields[4]] = fields[2]
    return known


def summary(root, verdicts, threshold):
    killed = sum(1 for _, status in verdicts if status == "killed")
    survivors = [mutant for mutant, status in verdicts if status == "survived"]
    for mutant in survivors:
        print("survived: %s:%d (%s)\n%s" % (mutant.file, mutant.line, mutant.kind, difference(root, mutant)))
    counted = killed + len(survivors)
    if counted == 0:
        print("no mutant was counted")
        return 1
    for kind in KINDS:
        of_kind = [status for mutant, status in verdicts if mutant.kind == kind and status in COUNTED]
        print("%-11s %3d of %3d killed" % (kind, of_kind.count("killed"), len(of_kind)))
    ratio = 100.0 * killed / counted
    skipped = sum(1 for _, status in verdicts if status == "does-not-compile")
    print("killed %d of %d (%.0f%%; threshold %.0f%%); %d did not compile and are not counted"
          % (killed, counted, ratio, threshold, skipped))
    return 0 if ratio >= threshold else 1


def main():
    args = arguments()
    mutants = all_mutants(args.root, args.seed)
    if args.list:
        for mutant in mutants[:args.count]:
            print("%s:%d (%s)\n%s" % (mutant.file, mutant.line, mutant.kind, difference(args.root, mutant)))
        return 0
    bench = Bench(args.root, args.jobs)
    results = bench.folder / "results.tsv"
    known = read_results(results, args.seed) if args.resume else {}
    if not args.resume or not results.exists():
        results.write_text("seed\tkind\tstatus\tseconds\tmutant\n")
    elif not results.read_text().endswith("\n"):
        with open(results, "a") as out:
            out.write("\n")
    print("building the tree without a fault", flush=True)
    wrong = bench.baseline()
    if wrong:
        print("error: the tree %s; see %s" % (wrong, bench.log), file=sys.stderr)
        return 1
    verdicts = []
    counted = 0
    for mutant in mutants:
        if counted >= args.count:
            break
        status = known.get(key_of(mutant))
        if status is None:
            begin = time.monotonic()
            bench.log.write_bytes(b"")
            status = bench.judge(mutant)
            line = [str(args.seed), mutant.kind, status, "%.0f" % (time.monotonic() - begin), key_of(mutant)]
            with open(results, "a") as out:
                out.write("\t".join(line) + "\n")
            print("%3d  %-16s %-10s %s:%d" % (counted + 1, status, mutant.kind, mutant.file, mutant.line), flush=True)
        verdicts.append((mutant, status))
        counted += status in COUNTED
    return summary(args.root, verdicts, args.threshold)


if __name__ == "__main__":
    sys.exit(main())
