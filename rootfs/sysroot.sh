#!/bin/sh
# Usage: sysroot.sh sysroot|tools|rig ARCH DESTINATION
#
# Unpacks the Debian packages of rootfs/guest-packages into DESTINATION: the guest's libraries for
# ARCH, the tools for the machine itself, or what the WSL rig is made of. The .deb files stay in the
# cache folder: a second clone needs no network.
set -eu

kind=$1 arch=$2 dest=$3
here=$(cd "$(dirname "$0")" && pwd)
. "$here/apt.sh"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/codev-sandbox/debs

case $arch in
x86_64) debian_arch=amd64 ;;
aarch64) debian_arch=arm64 ;;
*) echo "error: no guest for ARCH=$arch (x86_64 or aarch64)" >&2; exit 1 ;;
esac

packages=$(sed 's/#.*//' "$here/guest-packages" |
    awk -v kind="$kind" '$3 == kind { print $2 "/" $1 }')
key=$(echo "$packages" | sha256sum | cut -c 1-16)
store=$cache/$kind-$debian_arch-$key

fetch() {
    apt=$(mktemp -d)
    trap 'rm -rf "$apt"' EXIT
    # shellcheck disable=SC2046
    sources=$(apt_sources "$debian_arch" $(echo "$packages" | sed 's|.*/||' | sort -u))
    apt_begin "$apt" "$debian_arch" "$sources"
    # linux-image-ARCH names no kernel itself: the one that it depends on is meant.
    meta=$(echo "$packages" | grep '^linux-image-' || true)
    if [ -n "$meta" ]; then
        kernel=$(apt-cache depends "${meta%/*}" |
            awk '$1 == "Depends:" && $2 ~ /^linux-image-/ { print $2; exit }')
        packages=$(echo "$packages" | sed "s|^$meta\$|$kernel/${meta#*/}|")
    fi
    # shellcheck disable=SC2086
    (cd "$apt/debs" && apt-get download -qq $packages)
    unset APT_CONFIG
    mkdir -p "$cache"
    rm -rf "$store.new"
    mv "$apt/debs" "$store.new"
    mv -T "$store.new" "$store"
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ ! -d "$store" ]; then
    echo "  FETCH   $kind for $arch:" $packages
    fetch
fi
rm -rf "$dest.new"
mkdir -p "$dest.new"
for deb in "$store"/*.deb; do
    dpkg-deb -x "$deb" "$dest.new"
done
# Nothing in a guest program unwinds: the libraries' tables for it would only make the programs
# larger.
if [ "$kind" = sysroot ]; then
    for library in libbearssl libmnl; do
        "$arch-linux-gnu-objcopy" -R .eh_frame -R .rela.eh_frame \
            "$dest.new/usr/lib/$arch-linux-gnu/$library.a"
    done
fi
# Most of a stock kernel's modules drive hardware that no virtual machine has: 300 MB.
if [ "$kind" = rig ]; then
    for folder in sound drivers/gpu drivers/media drivers/staging drivers/infiniband drivers/scsi \
        drivers/usb drivers/iio \
        drivers/net/ethernet drivers/net/wireless; do
        rm -rf "$dest.new"/lib/modules/*/kernel/"$folder"
    done
fi
rm -rf "$dest"
mv -T "$dest.new" "$dest"
touch "$dest/.complete"
