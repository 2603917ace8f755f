#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Finding: one mount with an empty source, anywhere on a node, keeps a kubelet from unstaging every volume of the node.
#
# Versions: k8s.io/mount-utils v0.37.1, util-linux 2.38.1 of Debian 12, Linux 6.18.
#
# Behaviour: the kernel takes an empty source for a file system that needs none, as in mount -t tmpfs "" PATH, and
# the mount table shows an empty field. ParseMountInfo splits lines at white space, counts too few fields, and fails
# for the whole table. Before NodeUnstage a kubelet asks GetMountRefs for other users of the staging path (GenerateUnmountDeviceFunc
# in pkg/volume/util/operationexecutor). It gets the error for every path, about a mount that is no volume's: no
# volume is unstaged, so that none is detached, until that mount is gone. NodeUnpublish, which looks at one path, goes on.
#
# Guess before the run: mount refuses an empty source, or the table shows "none".
#
# Output seen:
#   before: 0; with a mount without a source: wrong number of fields in (expected at least 10, got 9): ...
#   afterwards: 0
. "$(dirname "$0")/lib/begin.sh"
build_plugin

mkdir volume other
mount -t tmpfs volume volume
plugin refs "$dir/volume" || changed "GetMountRefs fails without it"
mount -t tmpfs "" other || changed "mount refuses an empty source"
said=$(plugin refs "$dir/volume") && changed "GetMountRefs reads a table with an empty source"
echo "with a mount without a source: $said"
[[ $said == *fields* ]] || changed "the error is another one"
umount other
plugin refs "$dir/volume" || changed "GetMountRefs fails when it is gone"
echo "as found: every look for other mounts fails meanwhile"
