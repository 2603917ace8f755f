#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Finding: a volume below an overlay is unmounted with success, and the overlay goes on writing to it.
#
# Versions: Linux 6.18, util-linux 2.38.1, k8s.io/mount-utils v0.37.1, e2fsprogs 1.47.0 and xfsprogs 6.1.0 of Debian 12.
#
# Behaviour: overlayfs clones the mounts of its layers when it is mounted. A volume that has the layers (a container
# runtime, a builder of images, or a snapshotter on a persistent volume) is not busy for that: umount returns 0, and no mount
# table names its device. GetMountRefs, by which a kubelet looks for other users before NodeUnstage, finds none. The volume
# can be detached, and the overlay writes to the device until the overlay itself is unmounted. An open file in the
# same volume, or a bind mount, would have been found.
#
# Guess before the run: umount says EBUSY.
#
# Output seen, for ext4 and xfs:
#   umount 0, mounts of the device 0; a file that is written afterwards is on the disk
. "$(dirname "$0")/lib/begin.sh"
# shellcheck disable=SC2086
unpack $e2fsprogs $xfsprogs
build_plugin

for kind in ext4 xfs; do
  truncate --size 400M "$kind.img"
  attach "$kind.img"
  mkdir -p at merged
  plugin stage "$device" "$dir/at" "$kind" || changed "$kind is not staged"
  mkdir at/lower at/upper at/work
  mount -t overlay overlay -o lowerdir=at/lower,upperdir=at/upper,workdir=at/work merged
  umount at || changed "umount of $kind below an overlay fails"
  ! grep -q " $device " /proc/self/mountinfo || changed "a mount of $kind is left"
  [ -z "$(plugin refs "$dir/at")" ] || changed "GetMountRefs finds $kind"
  echo "after umount" >merged/late
  sync --file-system merged
  umount merged
  plugin stage "$device" "$dir/at" "$kind" || changed "$kind is not staged again"
  [ "$(cat at/upper/late)" = "after umount" ] || changed "a write after umount is not on the disk of $kind"
  umount at
  losetup --detach "$device"
  echo "$kind: umount 0, mounts of the device 0; a file that is written afterwards is on the disk"
done
