#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Finding: a frozen file system is unmounted with success, and lives on without a mount.
#
# Versions: Linux 6.18, util-linux 2.38.1, e2fsprogs 1.47.0 and xfsprogs 6.1.0 of Debian 12, k8s.io/mount-utils v0.37.1.
#
# Behaviour: backup tools freeze a volume (fsfreeze) in a hook before a snapshot, and thaw it in a hook after the
# snapshot. A pod that is deleted between the hooks is unmounted as usual: umount(2) returns 0, and no mount table
# names the device. NodeUnpublish and NodeUnstage succeed, and the volume is detached. The kernel keeps the file system,
# and has the device open: a loop device is not freed, and an exclusive open says EBUSY. A thaw needs a path, and there
# is none. FormatAndMount on the same node mounts the same frozen file system again and returns no error, after an fsck
# that says "is in use" (mount-utils ignores that). The first write then waits in the kernel until a thaw at the new path.
# The frozen state was another pod's.
#
# Guess before the run: umount says EBUSY.
#
# Output seen, for ext4 and for xfs:
#   unmounted with success while frozen, alive without a mount, and frozen at the next mount
. "$(dirname "$0")/lib/begin.sh"
# shellcheck disable=SC2086
unpack $e2fsprogs $xfsprogs
build_plugin

for kind in ext4 xfs; do
  truncate --size 400M "$kind.img"
  attach "$kind.img"
  mkdir "$kind"
  plugin stage "$device" "$dir/$kind" "$kind" || changed "$kind is not staged"
  echo data >"$kind/file"
  fsfreeze --freeze "$kind"
  umount "$kind" || changed "umount of a frozen $kind fails"
  ! grep -q " $device " /proc/self/mountinfo || changed "a mount of $kind is left"
  losetup --detach "$device"
  losetup "$device" >/dev/null 2>&1 || changed "nothing holds the device of a frozen $kind"
  plugin stage "$device" "$dir/$kind" "$kind" || changed "a frozen $kind can't be staged again"
  # A second freeze fails: it is frozen.
  ! fsfreeze --freeze "$kind" 2>/dev/null || changed "$kind was thawed by umount or mount"
  fsfreeze --unfreeze "$kind"
  umount "$kind"
  ! losetup "$device" >/dev/null 2>&1 || changed "the device of $kind stays after the thaw"
  echo "$kind: unmounted with success while frozen, alive without a mount, and frozen at the next mount"
done
