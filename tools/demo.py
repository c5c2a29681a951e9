#!/usr/bin/env python3
"""What tools/demo shows, once everything is built. usage: demo.py BUILD_DIR [GPT_ARGUMENT...]"""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile

# The model is small, so that a simulated device trains it in seconds; with the usual pages of 2 MiB most of its
# tensors would share a page. On a real device, and with tensors of real size, pages stay as they are.
PAGE = '64KiB'
BUDGETS = (100, 80, 60, 50, 40, 30)


class Run:
    def __init__(self, status, out, err, stats, report):
        self.status, self.out, self.err = status, out, err
        self.stats, self.report = stats, report


def main():
    build, arguments = sys.argv[1], sys.argv[2:]
    tidepool = os.path.join(build, 'bin', 'tidepool')
    program = [os.path.join(build, 'bin', 'gpt')] + arguments
    folder = tempfile.mkdtemp(prefix='tidepool-demo-')
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

    def run(memory, options):
        stats, report = os.path.join(folder, 'stats.json'), os.path.join(folder, 'report.json')
        for path in (stats, report):
            if os.path.exists(path):
                os.remove(path)
        env = dict(os.environ, SIMGPU_PAGE=PAGE, SIMGPU_STATS=stats)
        options = [o.replace('REPORT', report) for o in options]
        done = subprocess.run([tidepool, 'run', f'--sim={memory}'] + options + ['--'] + program,
                              env=env, capture_output=True, text=True)
        def read(path):
            try:
                with open(path) as f:
                    return json.load(f)
            except OSError:
                return {}
        return Run(done.returncode, done.stdout, done.stderr, read(stats), read(report))

    def indent(text):
        for line in text.rstrip().splitlines():
            print('    ' + line)
        sys.stdout.flush()

    failures = []

    def check(condition, what):
        if not condition:
            failures.append(what)
            print('    NOT AS PROMISED: ' + what)

    print('== 1. The trainer on a device with plenty of memory', flush=True)
    plain = run('16GiB', ['--off'])
    indent(plain.out + plain.err)
    if plain.status != 0:
        sys.exit('demo: the plain run failed')
    peak = plain.stats['peak_physical_bytes']
    print(f'    peak of device memory: {peak / 2**20:.2f} MiB')

    small = peak * 40 // 100
    print(f'== 2. The same on a device with 40 % of that, {small / 2**20:.2f} MiB', flush=True)
    refused = run(small, ['--off'])
    indent(refused.err)
    check(refused.status != 0, 'the small device should have been too small')

    print('== 3. The same device, under Tidepool', flush=True)
    held = run(small, ['--budget', str(small), '--report', 'REPORT'])
    indent(held.out + held.err)
    check(held.status == 0, 'the run under Tidepool failed')
    check(held.out == plain.out, 'the output differs')
    if held.out == plain.out:
        print('    every loss, parameter and gradient has the same bits')

    print('== 4. Budgets')
    print('    budget        peak MiB    drops  rebuilds  identical  virtual time')
    for percent in BUDGETS:
        budget = peak * percent // 100
        r = run(budget, ['--budget', str(budget), '--report', 'REPORT'])
        same = r.status == 0 and r.out == plain.out
        used = r.stats.get('peak_physical_bytes', 0)
        ratio = r.stats.get('virtual_time_ns', 0) / plain.stats['virtual_time_ns']
        print(f'    {percent:4d} %  {used / 2**20:13.2f}  {r.report.get("drops", 0):7d}'
              f'  {r.report.get("rebuilds", 0):8d}  {"yes" if same else "NO":>9s}  {ratio:11.2f}x',
              flush=True)
        check(same, f'at {percent} % the output differs or the run failed')
        check(used <= budget and r.report.get('peak_physical_bytes', 0) <= budget,
              f'at {percent} % the budget was exceeded')
    print('    (virtual time: of the simulated device, against the plain run, whose cudaMalloc and cudaFree')
    print('     cost more than those of a pool)')
    if failures:
        sys.exit('demo: ' + '; '.join(failures))


main()
