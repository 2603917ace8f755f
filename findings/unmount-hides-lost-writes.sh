#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Finding: umount returns 0 when the last writes are lost. FormatAndMount on the next node says nothing, either.
#
# Versions: Linux 6.18, util-linux 2.38.1, e2fsprogs 1.47.0 and xfsprogs 6.1.0 of Debian 12, k8s.io/mount-utils v0.37.1.
#
# Behaviour: a thin disk has no room for what is in the page cache. The container's write(2) and close(2) succeeded. The
# kernel writes the pages at umount, which gets errors from the disk, drops the pages, and returns 0. NodeUnstage
# succeeds, and the volume is detached. Room is made, and FormatAndMount (which runs fsck -a) mounts the volume without
# a word. The file is not there, or is short, or has zeros in place of data. A syncfs(2) before umount returns the error. mount-utils
# has no such call, and drivers that use it have none.
#
# Guess before the run: umount returns EIO.
#
# Output seen:
#   ext4: write, umount and FormatAndMount succeed, 116993024 of 157286400 bytes are there; syncfs tells of it
#   xfs: write, umount and FormatAndMount succeed, 58384384 of 157286400 bytes are there; syncfs tells of it
. "$(dirname "$0")/lib/begin.sh"
# shellcheck disable=SC2086
unpack $e2fsprogs $xfsprogs
build_plugin

# A thin pool: disks of 400 MiB with room for 120 MiB.
mkdir pool at
for kind in ext4 xfs; do
  for flush in without with; do
    mount -t tmpfs -o size=120M pool pool
    truncate --size 400M pool/disk
    attach pool/disk
    plugin stage "$device" "$dir/at" "$kind" || changed "$kind is not staged"
    sync --file-system at
    head --bytes=150M /dev/zero | tr '\0' x >at/file || changed "write(2) to $kind says that the disk is full"
    if [ "$flush" = with ]; then
      ! sync --file-system at 2>/dev/null || changed "syncfs of $kind succeeds"
      umount at
    else
      umount at || changed "umount of $kind tells of lost writes"
      mount -o remount,size=600M pool
      plugin stage "$device" "$dir/at" "$kind" || changed "FormatAndMount of $kind tells of lost writes"
      kept=$(cat at/file 2>/dev/null | tr --delete --complement x | wc --bytes)
      [ "$kept" -lt $((150 << 20)) ] || changed "nothing of $kind is lost"
      umount at
    fi
    losetup --detach "$device"
    umount pool
  done
  echo "$kind: write, umount and FormatAndMount succeed, $kept of $((150 << 20)) bytes are there; syncfs tells of it"
done
