#!/bin/sh
# Usage: packages.sh build|test|bench
#
# Installs the Debian packages of rootfs/packages that this machine lacks, and says first which and
# why: `build`, for building and running, `test`, for tests and lint as well, or `bench`, for
# measurements too. When nothing is missing it only runs dpkg-query, for a few milliseconds. On a
# system without dpkg it only names the list; the names are Debian's.
set -eu

purpose=$1
list=$(dirname "$0")/packages
wanted=$(sed 's/#.*//' "$list" | awk -v purpose="$purpose" \
    '$2 == "build" || ($2 == "test" && purpose != "build") || $2 == purpose { print $1 }')

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "note: no Debian system; see $list for what has to be installed" >&2
    exit 0
fi

# shellcheck disable=SC2086
have=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $wanted 2>/dev/null |
    awk '$1 == "installed" { print $2 }') || true
missing=$(printf '%s\n' "$wanted" | grep -vxF -e "$have" || true)
# A nodejs that is not Debian's brings npm itself, and conflicts with Debian's.
[ ! -x /usr/bin/npm ] || missing=$(printf '%s\n' "$missing" | grep -vxF npm || true)
[ -n "$missing" ] || exit 0

echo "These Debian packages are missing and will be installed with apt-get:"
for package in $missing; do
    awk -v package="$package" '$1 == package {
        sub(/^[^ ]+ +[^ ]+ +/, ""); printf "  %-24s%s\n", package, $0 }' "$list"
done

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}
if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null 2>&1; then
    echo "error: not root and no sudo: install them yourself, then run make again" >&2
    exit 1
fi

# A package may bring a service (nginx), but tests start their own. This policy keeps Debian's
# packages from starting one while they are installed, unless the machine has a policy already.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    trap 'as_root rm -f $policy' EXIT
    trap 'exit 130' INT TERM HUP
    printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
    as_root chmod 755 $policy
fi

# The lists of a fresh machine are absent or old. When they cannot be updated, old ones may do.
as_root apt-get update -q ||
    echo "note: apt-get update failed; trying with the lists that are there" >&2
# shellcheck disable=SC2086
as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends $missing
