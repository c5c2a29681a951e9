#!/usr/bin/env python3
"""End to end: the gpt and mlp samples on simgpu, plain and under Tidepool. usage: e2e_test.py BUILD_DIR CASE"""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
TIDEPOOL = os.path.join(BUILD, 'bin', 'tidepool')
GPT = os.path.join(BUILD, 'bin', 'gpt')
MLP = os.path.join(BUILD, 'bin', 'mlp')
SMALL = ['--steps', '2', '--batch', '8', '--layers', '6']
BUDGETS = (100, 80, 60, 50, 40, 30)
FOLDER = tempfile.mkdtemp(prefix='tidepool-e2e-')
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
PAGE = '64KiB'


def run(options, program, env=None):
    stats, report = os.path.join(FOLDER, 'stats.json'), os.path.join(FOLDER, 'report.json')
    for path in (stats, report):
        if os.path.exists(path):
            os.remove(path)
    full = {k: v for k, v in os.environ.items() if not k.startswith(('TIDEPOOL_', 'SIMGPU_'))}
    full.update(SIMGPU_PAGE=PAGE, SIMGPU_STATS=stats, **(env or {}))
    done = subprocess.run([TIDEPOOL, 'run'] + [o.replace('REPORT', report) for o in options] + ['--'] + program,
                          env=full, capture_output=True, text=True, timeout=300)
    def read(path):
        return json.load(open(path)) if os.path.exists(path) else {}
    done.stats, done.report = read(stats), read(report)
    return done


def expect(condition, what):
    if not condition:
        sys.exit('FAILED: ' + what)


def plain(program=(GPT, *SMALL)):
    done = run(['--sim', '--off'], list(program))
    expect(done.returncode == 0, 'the plain run: ' + done.stderr)
    return done


def under_budget(reference, percent, options=(), env=None, program=(GPT, *SMALL)):
    peak = reference.stats['peak_physical_bytes']
    budget = peak * percent // 100
    done = run([f'--sim={budget}', '--budget', str(budget), '--report', 'REPORT'] + list(options),
               list(program), env)
    what = f'{percent} % {" ".join(options)} {env or ""}'
    expect(done.returncode == 0, f'{what}: {done.stderr}')
    expect(done.stdout == reference.stdout, f'{what}: the output differs')
    expect(done.stats['peak_physical_bytes'] <= budget, f'{what}: over budget by the device\'s count')
    expect(done.report['peak_physical_bytes'] <= budget, f'{what}: over budget by its own count')
    expect(percent > 60 or done.report['drops'] > 0, f'{what}: nothing was dropped')
    return done


def budgets(options):
    reference = plain()
    for percent in BUDGETS:
        under_budget(reference, percent, options)


def seeds():
    reference = plain()
    for seed in range(1, 21):
        env = {'SIMGPU_SEED': str(seed)}
        adversarial = run(['--sim', '--off'], [GPT] + SMALL, env)
        expect(adversarial.stdout == reference.stdout, f'seed {seed}: the plain run differs')
        under_budget(reference, BUDGETS[seed % len(BUDGETS)], ['--strict'] if seed % 2 else [], env)


def once():
    """A trainer that allocates each tensor once: what a launch is certain to overwrite is dead."""
    program = (MLP, '--steps', '3')
    reference = plain(program)
    for percent in (100, 70, 50, 30):
        for options in ([], ['--strict']):
            done = under_budget(reference, percent, options, {'SIMGPU_SEED': str(percent)}, program)
            expect(percent > 60 or done.report['rebuilds'] > 0, f'{percent} %: nothing was rebuilt')


def settles():
    """Training repeats: with room for everything at its peak, later steps change no mapping."""
    for program in ((GPT, *SMALL[2:]), (MLP,)):
        reference = plain((*program, '--steps', '4'))
        calls = []
        for steps in (4, 8):
            long = plain((*program, '--steps', str(steps)))
            long.stats['peak_physical_bytes'] = reference.stats['peak_physical_bytes']
            done = under_budget(long, 100, [], {}, (*program, '--steps', str(steps)))
            calls.append(sum(done.stats[name] for name in ('map_calls', 'unmap_calls', 'create_calls')))
        expect(calls[1] - calls[0] <= 16, f'{program}: {calls} driver calls in 4 and in 8 steps')


def swapped():
    """Without anything that could be recomputed, values go to the host, as far as its budget reaches."""
    program = (MLP, '--steps', '2')
    reference = plain(program)
    done = under_budget(reference, 30, [], {}, program)
    expect(done.report['swaps_out'] > 0 and done.report['swaps_in'] > 0, 'nothing was swapped')
    limited = under_budget(reference, 70, [], {'TIDEPOOL_HOST_BUDGET': '512KiB'}, program)
    expect(limited.report['peak_host_bytes'] <= 512 * 1024, 'over the host budget')
    none = under_budget(reference, 85, [], {'TIDEPOOL_HOST_BUDGET': '0'}, program)
    expect(none.report['swaps_out'] == 0 and none.report['peak_host_bytes'] == 0, 'swapped with no budget')


def errors():
    for budget in ('8GB', '0', '-1', '120%', 'much', ''):
        done = run(['--sim', '--budget', budget], [GPT] + SMALL)
        expect(done.returncode == 125, f'budget {budget!r}: status {done.returncode}')
        lines = done.stderr.strip().splitlines()
        expect(len(lines) == 1 and lines[0].startswith('tidepool: '), f'budget {budget!r}: {done.stderr}')
        expect(done.stdout == '', 'a program was started under a bad budget')
    # The library by itself does not guess either.
    done = subprocess.run([GPT] + SMALL, capture_output=True, text=True, env=dict(
        os.environ, LD_PRELOAD=os.path.join(BUILD, 'lib', 'libtidepool.so'), TIDEPOOL_BUDGET='8GB',
        LD_LIBRARY_PATH=os.path.join(BUILD, 'lib', 'simgpu')))
    expect(done.returncode != 0 and 'TIDEPOOL_BUDGET' in done.stderr and '8GiB' in done.stderr,
           'the library accepts a bad budget: ' + done.stderr)
    done = run(['--sim', '--budget', '1GiB'], ['/nonexistent/program'])
    expect(done.returncode == 127 and '/nonexistent/program' in done.stderr, 'a missing program')
    done = run(['--sim', '--budget', '1GiB'], ['/etc/hostname'])
    expect(done.returncode == 126, 'a program that cannot be run')
    done = run(['--sim', '--budget', '1GiB'], ['/bin/sh', '-c', 'echo hello; exit 7'])
    expect(done.returncode == 7 and done.stdout == 'hello\n', 'a program that is not CUDA keeps its status')
    expect('made no CUDA driver call' in done.stderr, 'a program that is not CUDA is named')
    done = run(['--budget', '1GiB'], [GPT] + SMALL)
    if not os.path.exists('/dev/nvidiactl'):
        expect('no CUDA driver' in done.stderr and done.returncode == 1, 'a missing driver: ' + done.stderr)


def too_small():
    done = run(['--sim', '--budget', '256KiB'], [GPT] + SMALL)
    expect(done.returncode == 1, f'status {done.returncode}')
    expect('out of memory' in done.stderr.splitlines()[-1], 'the program sees cudaErrorMemoryAllocation')
    lines = [l for l in done.stderr.splitlines() if l.startswith('tidepool: out of memory')]
    expect(lines and 'budget 256.0 KiB' in lines[0], 'one line says what needs how much: ' + done.stderr)


def timeline():
    path = os.path.join(FOLDER, 'trace.json')
    reference = plain()
    under_budget(reference, 40, ['--timeline', path])
    trace = json.load(open(path))
    kinds = {e.get('cat') for e in trace['traceEvents']} | {e['ph'] for e in trace['traceEvents']}
    for kind in ('op', 'rebuild', 'drop', 'bind', 'C'):
        expect(kind in kinds, f'no {kind} events in the timeline')


def kernels():
    done = subprocess.run([TIDEPOOL, 'kernels', GPT], capture_output=True, text=True)
    expect(done.returncode == 0, done.stderr)
    expect('opaque' not in done.stdout and 'can be replayed' in done.stdout, done.stdout)


def doctor():
    done = subprocess.run([TIDEPOOL, 'doctor', '--sim'], capture_output=True, text=True)
    expect(done.returncode == 0 and 'device 0' in done.stdout, done.stdout + done.stderr)


{'overlay': lambda: budgets([]), 'strict': lambda: budgets(['--strict']), 'seeds': seeds, 'once': once,
 'settles': settles, 'swapped': swapped, 'errors': errors,
 'too_small': too_small, 'timeline': timeline, 'kernels': kernels, 'doctor': doctor}[sys.argv[2]]()
print('passed')
