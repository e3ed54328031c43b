#!/bin/sh
# The tour's half inside the sandbox, run as codev. Prints what it sees; lines that begin with
# "::check" are verdicts for the host's half (qemu-harness/tour/run):
#
#     ::check NAME ok|wrong DETAIL
#
# Arguments: the mounted project, the scratch folder, the probe program, a vsock port that the host
# has open for somebody else.
set -u
project=$1
scratch=$2
probe=$3
foreign_port=$4
relay=http://127.0.0.1:8788

check() { # NAME DETAIL, with the verdict in $?
    if [ "$1" -eq 0 ]; then echo "::check $2 ok $3"; else echo "::check $2 wrong $3"; fi
}

refused() { # NAME PROBE-VERB ARGUMENTS...: right when the probe says that the kernel refused
    name=$1
    shift
    said=$("$probe" "$@" 2>&1)
    check $? "$name" "$said"
}

echo "== who am I"
id
[ "$(id -un)" = codev ] && [ "$(id -u)" != 0 ] && [ "$(id -G)" = "$(id -g)" ]
check $? identity "$(id -un), uid $(id -u), no other group"

echo "== what do I see"
ls /workspace /sys/class/net
[ "$(ls /sys/class/net)" = lo ]
check $? no-network-device "/sys/class/net holds: $(ls /sys/class/net | tr '\n' ' ')"

echo "== the project's tree, read-only"
cd "$project" || exit 1
hash=$(find . -path ./build -prune -o -path ./.git -prune -o -name __pycache__ -prune -o \
    -name .pytest_cache -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum)
echo "::hash ${hash%% *}"
touch "$project/tour-was-here" 2>"$scratch/.refusal"
[ $? -ne 0 ] && grep -q 'Read-only file system' "$scratch/.refusal"
check $? read-only "$(cat "$scratch/.refusal")"
rm -f "$scratch/.refusal"

echo "== a file for the host"
echo "written inside by $(id -un)" >"$scratch/from-inside.txt"
check $? read-write "$(ls -ln "$scratch/from-inside.txt")"

echo "== the model gateway, through the broker"
echo '{"model":"demo","max_tokens":64,"stream":true,"messages":[{"role":"user","content":"Hello"}]}' \
    >"$scratch/.request.json"
"$probe" http POST /gateway/v1/messages --body-file "$scratch/.request.json" 2>&1 |
    while IFS= read -r line; do
        case $line in
        HTTP/*) echo "   $line" ;;
        data:*) echo "::event $(cut -d' ' -f1 /proc/uptime) $line" ;;
        esac
    done
rm -f "$scratch/.request.json"

echo "== a named rule"
said=$(wget -q -O - "$relay/registry/codev-demo" 2>&1)
check $? named-rule "$(echo "$said" | cut -c 1-60)..."

echo "== what must not work"
said=$(wget -O - "$relay/elsewhere/" 2>&1)
case $said in *"404"*) verdict=0 ;; *) verdict=1 ;; esac
check $verdict unknown-name-refused "$(echo "$said" | grep -m1 404)"
refused internet-v4-refused connect 203.0.113.1 443
refused internet-v6-refused connect 2001:db8::1 443
refused udp-refused udp 203.0.113.1 53
refused vsock-refused vsock "$foreign_port"
refused dns-refused dns example.com
refused root-refused setuid0
refused mount-refused mount
refused namespace-refused userns
exit 0
