#!/usr/bin/env python3
"""One trap program, plain on a device with plenty of memory and under Tidepool at several budgets.

usage: run_trap.py BUILD_DIR TRAP

What the program prints and its exit status must not depend on the budget, the mode, or the order in
which the simulated device does what it may do in any order. The report has to show that memory
really changed hands, or that what stays does so for the expected reason.
"""
import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
PAGE = 64 << 10
BUDGETS = (60, 35)  # percent of the plain run's peak, beside 100
# Where the chain of values that a rebuild has to go through needs more than that. (What an op updates
# in place, or may not have covered, ties each version to the one before.)
MORE = {'scratch': (80, 70), 'streams_events': (60, 45)}

# Reasons for which memory is pinned in the trap, and must be: each road pins what it names.
PINNED = {
    'annotated': {'opaque_kernel', 'user'},  # the sum; what Lied was handed
    'device_stored': {'escapes'},
    'graph_capture': {'graph'},
    'graph_busy': set(),  # freed in the end
    'graph_explicit': {'graph'},
    'host_functions': {'pointer_in_memory'},
    'host_visible_tables': {'pointer_in_memory'},
    'ipc': {'shared'},
    'odd_tables': {'pointer_in_memory'},
    'pointer_tables': {'pointer_in_memory'},
    'symbols': {'escapes', 'pointer_in_memory'},
    'textures': {'texture'},
}
# Traps whose memory cannot change hands at every budget below 100 %: everything stays resident from
# somewhere on, and a budget below that ends in the program's own out-of-memory path.
MAY_RUN_OUT = {'host_functions', 'host_visible_tables'}
MAY_KEEP_ALL = MAY_RUN_OUT


CONFIGS = {'annotated': 'annotated.conf'}  # TIDEPOOL_CONFIG


def check_annotations(done):
    """What the report says of annotated.conf, and what was said on stderr."""
    report = done.report
    expected = {'Apply': '2', 'ApplyStruct': '3', 'Accumulate': '4'}
    wrong = []
    if report['pinned_bytes_by_reason'].get('opaque_kernel') != 256 << 10:
        wrong.append(f'only the sum is to be pinned: {report["pinned_bytes_by_reason"]}')
    used = [line for line in report['annotated_kernels']
            if line in [f'{name} (annotation, {line.split("annotation, ")[1][:-3]}:{number})'
                        for name, number in expected.items()]]
    if len(used) != 3 or len(report['annotated_kernels']) != 3:
        wrong.append(f'annotated kernels: {report["annotated_kernels"]}')
    if len(report['unused_annotations']) != 1 or not report['unused_annotations'][0].endswith(':7: NoSuchKernel'):
        wrong.append(f'unused annotations: {report["unused_annotations"]}')
    refused = report['refused_annotations']
    if len(refused) != 1 or not refused[0].startswith('Lied: ') or 'the PTX reads and writes' not in refused[0]:
        wrong.append(f'refused annotations: {refused}')
    if done.stderr.count('annotation of Lied: ') != 1:
        wrong.append(f'what is refused is to be said once: {brief(done.stderr)}')
    return wrong


def run(tidepool, options, program, seed):
    with tempfile.TemporaryDirectory(prefix='tidepool-trap-') as folder:
        stats, report = os.path.join(folder, 'stats.json'), os.path.join(folder, 'report.json')
        env = {k: v for k, v in os.environ.items() if not k.startswith(('TIDEPOOL_', 'SIMGPU_'))}
        env.update(SIMGPU_PAGE=str(PAGE), SIMGPU_STATS=stats)
        trap = os.path.basename(program).removeprefix('trap_')
        if trap in CONFIGS:
            env['TIDEPOOL_CONFIG'] = os.path.join(os.path.dirname(os.path.abspath(__file__)), CONFIGS[trap])
        if seed:
            env['SIMGPU_SEED'] = str(seed)
        if '--off' not in options:
            options = options + ['--report', report]
        done = subprocess.run([tidepool, 'run', '--sim=1GiB'] + options + ['--', program], env=env,
                              capture_output=True, text=True, timeout=100)
        for name, path in (('stats', stats), ('report', report)):
            setattr(done, name, json.load(open(path)) if os.path.exists(path) else {})
    return done


def brief(text):
    lines = text.strip().splitlines()
    return ' ... '.join(lines if len(lines) < 3 else [lines[0], lines[-1]])


def main():
    build, trap = os.path.abspath(sys.argv[1]), sys.argv[2]
    tidepool, program = os.path.join(build, 'bin', 'tidepool'), os.path.join(build, 'tests', 'trap_programs', 'trap_' + trap)
    plain = run(tidepool, ['--off'], program, 0)
    if plain.returncode == SKIPPED:
        sys.exit(SKIPPED)
    if plain.returncode != 0 or not plain.stdout:
        sys.exit(f'the plain run: status {plain.returncode}: {plain.stderr}')
    peak = plain.stats['peak_physical_bytes']
    for seed in (1, 2, 3):  # a trap whose output depends on the order of execution proves nothing
        other = run(tidepool, ['--off'], program, seed)
        if (other.returncode, other.stdout) != (plain.returncode, plain.stdout):
            sys.exit(f'the plain run with seed {seed} differs: {brief(other.stderr)}')
    failures, pinned, changed_hands = [], set(), False
    runs = [(100, [], 0), (100, ['--strict'], 1)] + [
        (percent, options, seed) for percent in MORE.get(trap, BUDGETS)
        for options, seeds in (([], (0, 1, 2, 3)), (['--strict'], (0, 4))) for seed in seeds]
    for percent, options, seed in runs:
        what = f'{percent} % {" ".join(options)} seed {seed}'
        budget = max(peak * percent // 100, 2 * PAGE)
        done = run(tidepool, ['--budget', str(budget)] + options, program, seed)
        report = done.report
        if trap in MAY_RUN_OUT and percent < 100 and done.returncode == 1:
            if 'ErrorMemoryAllocation' not in done.stderr or 'tidepool: out of memory' not in done.stderr:
                failures.append(f'{what}: ended without saying that memory ran out: {brief(done.stderr)}')
            continue
        if done.returncode != plain.returncode:
            failures.append(f'{what}: status {done.returncode}: {brief(done.stderr)}')
        elif done.stdout != plain.stdout:
            differ = [f'{a} / {b}' for a, b in zip(plain.stdout.splitlines(), done.stdout.splitlines()) if a != b]
            failures.append(f'{what}: the output differs: {differ[:4]} {brief(done.stderr)}')
        elif not report:
            failures.append(f'{what}: no report: {brief(done.stderr)}')
        elif report['peak_physical_bytes'] > budget:
            failures.append(f'{what}: over the budget')
        else:
            pinned |= set(report['pinned_bytes_by_reason']) - {'small'}
            if trap in CONFIGS:
                failures += [f'{what}: {wrong}' for wrong in check_annotations(done)]
            changed_hands = changed_hands or (report['drops'] > 0 and report['rebuilds'] > 0)
    if not changed_hands and trap not in MAY_KEEP_ALL:
        failures.append('nothing was dropped and rebuilt in any run')
    if pinned != PINNED.get(trap, set()):
        failures.append(f'pinned for {sorted(pinned)}, expected {sorted(PINNED.get(trap, set()))}')
    if failures:
        sys.exit('\n'.join(['FAILED ' + trap] + failures))
    print('passed')


main()
