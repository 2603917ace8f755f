#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Finding: a snapshot of a volume in use can't be mounted from a disk that is attached read-only. From a writable disk
# the mount with "ro" writes to the disk.
#
# Versions: Linux 6.18, k8s.io/mount-utils v0.37.1, e2fsprogs 1.47.0, xfsprogs 6.1.0 and btrfs-progs 6.2 of Debian 12.
#
# Behaviour: a snapshot of a mounted file system has a log that waits for its replay. CSI lets a driver attach a
# ReadOnlyMany volume read-only (PUBLISH_READONLY), and FormatAndMount with "ro" runs no fsck. The mount then fails for ext4,
# XFS and btrfs: "cannot mount read-only", or "can't read superblock". A driver that attaches the disk writable and
# mounts it with "ro" gets its mount, since the kernel replays the log: a read-only mount changes the disk. A
# MULTI_NODE_READER_ONLY volume may be attached to several nodes, and each of them writes its replay to the one disk.
#
# Guess before the run: with "ro" all three are mounted from a read-only disk, perhaps with a warning.
#
# Output seen, for ext4, xfs and btrfs:
#   read-only disk: refused; writable disk: mounted with ro, and the disk's bytes changed
. "$(dirname "$0")/lib/begin.sh"
# shellcheck disable=SC2086
unpack $e2fsprogs $xfsprogs btrfs-progs=6.2-1+deb12u2
build_plugin

mkdir at
for kind in ext4 xfs btrfs; do
  rm -f disk snapshot && truncate --size 400M disk
  attach disk
  plugin stage "$device" "$dir/at" "$kind" || changed "$kind is not staged"
  sync --file-system at
  for n in $(seq 50); do echo "$n" >"at/$n"; done
  sync at/50
  cp --sparse=always disk snapshot
  umount at
  losetup --detach "$device"

  attach snapshot --read-only
  said=$(plugin stage "$device" "$dir/at" "$kind" ro) && changed "a read-only disk with $kind is mounted"
  losetup --detach "$device"
  before=$(sha256sum <snapshot)
  attach snapshot
  plugin stage "$device" "$dir/at" "$kind" ro || changed "a writable disk with $kind is not mounted"
  umount at
  losetup --detach "$device"
  [ "$before" != "$(sha256sum <snapshot)" ] || changed "a mount of $kind with ro leaves the disk as it was"
  echo "$kind: read-only disk: refused; writable disk: mounted with ro, and the disk's bytes changed. $said"
done
