#!/usr/bin/env python3
"""Checks that every #include keeps to the table of layers in docs/architecture.md. usage: check_layers.py ROOT"""
import os
import re
import sys


def main():
    root = sys.argv[1]
    allowed = {}
    with open(os.path.join(root, 'docs', 'architecture.md')) as f:
        for line in f:
            match = re.match(r'\| ([\w/]+) \| ?([\w/, ]*) ?\|$', line)
            if match and match.group(1) != 'folder':
                allowed[match.group(1)] = [p.strip() for p in match.group(2).split(',') if p.strip()]
    if len(allowed) < 10:
        sys.exit('docs/architecture.md has no table of layers')
    folders = sorted(allowed, key=len, reverse=True)  # the most specific first
    wrong, seen = [], 0
    for folder in allowed:
        for path, _, names in os.walk(os.path.join(root, folder)):
            for name in names:
                if not name.endswith(('.h', '.cc', '.cu')):
                    continue
                full = os.path.join(path, name)
                relative = os.path.relpath(full, root)
                with open(full) as f:
                    for number, line in enumerate(f, 1):
                        match = re.match(r'\s*#include "([^"]+)"', line)
                        if not match or not os.path.exists(os.path.join(root, match.group(1))):
                            continue
                        seen += 1
                        target = next((g for g in folders if match.group(1).startswith(g + '/')), None)
                        if target is None or target not in allowed[folder]:
                            wrong.append(f'{relative}:{number}: {folder} may not include {match.group(1)}')
    if seen < 50:
        sys.exit('hardly any includes were found: is the root right?')
    if wrong:
        sys.exit('\n'.join(wrong))
    print(f'{seen} includes keep to the layers')


main()
