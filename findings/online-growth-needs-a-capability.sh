#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Finding: a CSI node plugin that has CAP_SYS_ADMIN, and not CAP_SYS_RESOURCE, mounts both ext4 and XFS,
# and grows only XFS while the volume is mounted.
#
# Versions: k8s.io/mount-utils v0.37.1, e2fsprogs 1.47.0 and xfsprogs 6.1.0 of Debian 12, Linux 6.18.
#
# Behaviour: mount-utils' ResizeFs is what most drivers call in NodeExpandVolume. Of a mounted ext4 file
# system it runs resize2fs, whose ioctl EXT4_IOC_RESIZE_FS wants CAP_SYS_RESOURCE (fs/ext4/resize.c,
# ext4_resize_begin). Of XFS it runs xfs_growfs, whose ioctl wants CAP_SYS_ADMIN (fs/xfs/xfs_fsops.c). A plugin
# with a securityContext that drops all capabilities and adds SYS_ADMIN passes its tests with XFS, stages and
# publishes ext4, and fails the first online expansion of ext4. The error says "Permission denied", and names
# no capability.
#
# Output seen:
#   ext4: 290 MiB before, 290 MiB after; resize of device /dev/loopN failed: exit status 1. resize2fs
#     output: resize2fs: Permission denied to resize filesystem
#   xfs: 256 MiB before, 576 MiB after
. "$(dirname "$0")/lib/begin.sh"
command -v setpriv >/dev/null || cant "needs setpriv"
# shellcheck disable=SC2086
unpack $e2fsprogs $xfsprogs
build_plugin

size() { df --output=size --block-size=1M "$1" | tail -1 | tr -d ' '; }

# grow_mounted makes a file system on a disk of 320 MiB, mounts it, doubles the disk, and grows the file
# system as a plugin without CAP_SYS_RESOURCE does.
grow_mounted() {
  local kind=$1 before after said
  truncate --size 320M "$kind.img"
  mkfs.$kind -q "$kind.img"
  attach "$kind.img"
  mkdir "at-$kind"
  mount "$device" "at-$kind"
  before=$(size "at-$kind")
  truncate --size 640M "$kind.img"
  losetup --set-capacity "$device"
  said=$(setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource ./plugin grow "$device" "$dir/at-$kind" 2>/dev/null | tr '\n' ' ') || true
  after=$(size "at-$kind")
  echo "$kind: $before MiB before, $after MiB after${said:+; $said}"
  [ "$after" -gt "$((before + 200))" ] && outcome=grown || outcome=same
  [[ $said != *"Permission denied to resize filesystem"* ]] || outcome=denied
}

grow_mounted ext4
ext4=$outcome
grow_mounted xfs
xfs=$outcome
if [ "$ext4" = denied ] && [ "$xfs" = grown ]; then
  echo "as found: without CAP_SYS_RESOURCE ext4 does not grow while it is mounted, and XFS does"
  exit 0
fi
changed "ext4 is $ext4, XFS is $xfs"
