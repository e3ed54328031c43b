#!/bin/sh
# Installs the Debian packages of rootfs/packages that this machine lacks, saying first which and why.
# With nothing missing it asks nobody anything: one dpkg-query of a few milliseconds. On a system without
# dpkg it only says what to look for, since the names are Debian's.
set -eu

list=$(dirname "$0")/packages
wanted=$(sed 's/#.*//' "$list" | awk 'NF { print $1 }')

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "note: no Debian system; see $list for what has to be installed" >&2
    exit 0
fi

# A provided name (pkg-config by pkgconf, say) counts only under its own name: the list holds real ones.
# shellcheck disable=SC2086
have=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null | awk '$1 == "installed" { print $2 }') || true
missing=$(printf '%s\n' "$wanted" | grep -vxF -e "$have" || true)
[ -n "$missing" ] || exit 0

echo "These Debian packages are missing and will be installed with apt-get:"
for package in $missing; do
    sed -n "s/^$package  *\(.*\)/  $package: \1/p" "$list"
done

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null 2>&1; then
    as_root=sudo
else
    echo "error: not root and no sudo: install them yourself, then run make again" >&2
    exit 1
fi

install() {
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
}

# The lists of a fresh machine are absent or old: refresh them first, but go on with old ones when that fails.
$as_root apt-get update -q || echo "note: apt-get update failed; trying with the lists that are there" >&2
install
