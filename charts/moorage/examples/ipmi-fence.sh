#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# ipmi-fence.sh off NODE    powers the machine of a node that is not Ready off, and says so by
#                           the condition fenced.moorage.dev/ipmi of its Node
# ipmi-fence.sh on NODE     takes the condition away, and powers the machine on
#
# An example: nobody has run it against a real BMC. docs/operate/dead-nodes.md says what the
# condition proves, and which rights and which AttachPolicy it needs.
set -eu

do=$1
node=$2

ipmi() { ipmitool -H "bmc-$node" -U fence -f /etc/ipmi chassis power "$1"; }

condition() {
	kubectl patch node "$node" --subresource=status --type=strategic -p "{\"status\":{\"conditions\":[$1]}}"
}

# unknown waits until nobody hears of the node.
unknown() { kubectl wait --for=condition=Ready=Unknown --timeout=-1s "node/$node"; }

case $do in
off)
	unknown
	ipmi off
	until ipmi status | grep -q 'is off'; do sleep 1; done
	# It may have been Ready again until a moment ago: a condition that is set while the node is
	# called Ready does not count.
	unknown
	now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
	until condition "{\"type\":\"fenced.moorage.dev/ipmi\",\"status\":\"True\",\"reason\":\"PoweredOff\",\"message\":\"off by IPMI\",\"lastHeartbeatTime\":\"$now\",\"lastTransitionTime\":\"$now\"}"; do sleep 1; done
	;;
on)
	condition '{"type":"fenced.moorage.dev/ipmi","$patch":"delete"}'
	ipmi on
	;;
*)
	echo "usage: ipmi-fence.sh off|on NODE" >&2
	exit 2
	;;
esac
