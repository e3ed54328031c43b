#!/bin/sh
# Usage: check.sh ARCH CONFIG
#
# Proves that a kernel configuration came out as meant: Kconfig drops an option whose dependency is
# missing without a word, and turns one on because another selects it. Every option of
# kconfig/required must be on in CONFIG, or have the value that stands there, and none of
# kconfig/forbidden may be on; a line of either may name the architecture that it is about.
set -eu

arch=$1 config=$2
here=$(cd "$(dirname "$0")" && pwd)

options() {
    sed 's/#.*//' "$here/$1" | awk -v arch="$arch" 'NF == 1 || $2 == arch { print $1 }'
}

bad=0
for option in $(options required); do
    case $option in
    *=*) line=CONFIG_$option ;;
    *) line=CONFIG_$option=y ;;
    esac
    if ! grep -qxF "$line" "$config"; then
        echo "error: $config: CONFIG_$option is required but not on" >&2
        bad=1
    fi
done
for option in $(options forbidden); do
    if grep -qx "CONFIG_$option=[ym]" "$config"; then
        echo "error: $config: CONFIG_$option is on but forbidden" >&2
        bad=1
    fi
done
if [ $bad = 0 ] && grep -q '=m$' "$config"; then
    echo "error: $config: modules:" "$(grep '=m$' "$config" | head -3)" >&2
    bad=1
fi
exit $bad
