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

case $do in
off)
	# A condition that is set before the node is not Ready does not count.
	kubectl wait --for=condition=Ready=Unknown --timeout=-1s "node/$node"
	ipmi off
	until ipmi status | grep -q 'is off'; do sleep 1; done
	now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
	condition "{\"type\":\"fenced.moorage.dev/ipmi\",\"status\":\"True\",\"reason\":\"PoweredOff\",\"message\":\"off by IPMI\",\"lastHeartbeatTime\":\"$now\",\"lastTransitionTime\":\"$now\"}"
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
