#!/usr/bin/env python3
"""Every function that the toolkit's CUDA runtime exports, simgpu's exports too, at the same version.

usage: exports_test.py OURS TOOLKIT_LIBRARY_FOLDER     (exit 77: the toolkit has no shared runtime)
"""
import pathlib
import re
import subprocess
import sys


def exported(library):
    text = subprocess.run(['nm', '-D', '--defined-only', library], check=True, text=True,
                          capture_output=True).stdout
    return set(re.findall(r' [TW] (\w+(?:@@?[\w.]+)?)$', text, re.M))


def main():
    ours, toolkit = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) / 'libcudart.so.13'
    if not toolkit.exists():
        print(f'{toolkit} is not there')
        return 77
    wanted, found = exported(toolkit), exported(ours)
    missing, extra = sorted(wanted - found), sorted(found - wanted)
    print(f'{len(wanted)} functions wanted, {len(found)} found')
    for name in missing:
        print('missing:', name)
    for name in extra:
        print('not in the toolkit:', name)
    return 1 if missing or extra or not wanted else 0


if __name__ == '__main__':
    sys.exit(main())
