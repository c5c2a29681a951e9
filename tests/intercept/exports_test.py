#!/usr/bin/env python3
"""libtidepool.so exports its hooks, dlsym and dlvsym, and its C API: nothing that could clash with the program's own.

usage: exports_test.py LIBTIDEPOOL
"""
import re
import subprocess
import sys

HOOK = re.compile(r'cu[A-Z]\w*|dlsym|dlvsym')
API = {'tidepool_start', 'tidepool_stop', 'tidepool_tag', 'tidepool_pin', 'tidepool_annotate', 'tidepool_get_statistics',
       'tidepool_version'}
WANTED = API | {'dlsym', 'dlvsym', 'cuInit', 'cuGetProcAddress', 'cuGetProcAddress_v2', 'cuMemAlloc_v2', 'cuMemFree_v2',
                'cuLaunchKernel', 'cuLaunchKernel_ptsz'}


def main():
    text = subprocess.run(['nm', '-D', '--defined-only', sys.argv[1]], check=True, text=True,
                          capture_output=True).stdout
    names = {line.split()[-1] for line in text.splitlines() if line.strip()}
    extra = sorted(n for n in names if not HOOK.fullmatch(n) and n not in API)
    missing = sorted(WANTED - names)
    print(f'{len(names)} exported names')
    for name in extra:
        print('must not be exported:', name)
    for name in missing:
        print('not exported:', name)
    return 1 if extra or missing else 0


if __name__ == '__main__':
    sys.exit(main())
