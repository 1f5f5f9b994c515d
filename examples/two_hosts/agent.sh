#!/bin/bash
# mpirun's way to another host, in place of ssh: HOST COMMAND...; the last number of the address is that of the namespace.
host=${1##*.} && shift
exec ip netns exec "$NAMESPACES-$host" unshare --uts bash -c "hostname host-$host && $*"
