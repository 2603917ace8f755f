#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Finding: a node plugin that is killed while it makes an XFS leaves a volume that FormatAndMount never mounts. With ext4
# the next call makes the file system anew.
#
# Versions: k8s.io/mount-utils v0.37.1, e2fsprogs 1.47.0 and xfsprogs 6.1.0 of Debian 12, Linux 6.18.
#
# Behaviour: FormatAndMount formats a disk on which blkid finds nothing. mkfs.ext4 writes its superblock last, so
# that a disk is either empty or has a file system. mkfs.xfs writes its superblock first, with sb_inprogress set, and
# clears that at the end. blkid calls both xfs. A plugin that is killed in between (a new version of its DaemonSet, a
# node out of memory, a power failure) has formatted the volume for mount-utils. Each later NodeStage gets "Structure needs
# cleaning" from mount, from every node: fsck.xfs does nothing, so that fsck -a mends nothing. The volume has
# never had data, and a person has to wipe it.
#
# Guess before the run: blkid finds nothing, or fsck -a mends it; both kinds are mounted in the end.
#
# Output seen (a kill at the Nth of mkfs's writes, then FormatAndMount):
#   ext4, killed at write 20, 40, 80, 160, 320: mounted
#   xfs, killed at write 10, 20, 30, 40, 50: mount failed: exit status 32 ... mount(2) system call failed: Structure needs cleaning.
. "$(dirname "$0")/lib/begin.sh"
# shellcheck disable=SC2086
unpack $e2fsprogs $xfsprogs strace=6.1-0.1 libunwind8=1.6.2-3
build_plugin

# interrupt KIND N has mkfs killed at its Nth write, and stages the disk: outcome is mounted, or what is said.
interrupt() {
  local kind=$1 flags=-f
  [ "$kind" = xfs ] || flags=-F
  rm -f disk && truncate --size 400M disk && mkdir -p at
  attach disk
  ! {
    strace -f -qq -o /dev/null -e trace=write,pwrite64 -e inject=write,pwrite64:signal=KILL:when="$2" "mkfs.$kind" "$flags" "$device"
  } >/dev/null 2>&1 || changed "mkfs.$kind has fewer than $2 writes"
  if outcome=$(plugin stage "$device" "$dir/at" "$kind"); then
    outcome=mounted
    umount at
  fi
  losetup --detach "$device"
  echo "$kind, killed at write $2: $outcome"
}

for n in 20 40 80 160 320; do
  interrupt ext4 "$n"
  [ "$outcome" = mounted ] || changed "ext4 is not mounted"
done
for n in 10 20 30 40 50; do
  interrupt xfs "$n"
  [[ $outcome == *"Structure needs cleaning"* ]] || changed "XFS is mounted, or refused for another reason"
done
