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
#
# It needs root and loop devices, a Go toolchain, and network to Debian's and Go's package servers.
# Exit 0: seen again. Exit 1: something else was seen. Exit 2: it can't run here.
set -euo pipefail

[ "$(id -u)" = 0 ] && [ -e /dev/loop-control ] || { echo "needs root and loop devices" >&2; exit 2; }
for tool in go apt-get dpkg-deb losetup setpriv mount; do
  command -v "$tool" >/dev/null || { echo "needs $tool" >&2; exit 2; }
done

dir=$(mktemp -d)
devices=()
cleanup() {
  umount "$dir"/at-* 2>/dev/null || true
  for device in "${devices[@]}"; do losetup --detach "$device" || true; done
  rm -rf "$dir"
}
trap cleanup EXIT
cd "$dir"

# The tools, unpacked beside the system's own.
(
  mkdir debs && cd debs
  apt-get -qq -o APT::Sandbox::User=root download e2fsprogs=1.47.0-2+b2 libext2fs2=1.47.0-2+b2 libss2=1.47.0-2+b2 libcom-err2=1.47.0-2+b2 \
    xfsprogs=6.1.0-1 libinih1=55-1 liburcu8=0.13.2-1
  for deb in *.deb; do dpkg-deb --extract "$deb" ../root; done
) || { echo "the packages can't be had: this is written for Debian 12" >&2; exit 2; }
for library in $(find root -type d -path '*lib/*-linux-gnu'); do
  LD_LIBRARY_PATH=$dir/$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
done
export LD_LIBRARY_PATH PATH=$dir/root/sbin:$dir/root/usr/sbin:$PATH

cat >go.mod <<'EOF'
module example.com/grow

go 1.26

require (
	k8s.io/mount-utils v0.37.1
	k8s.io/utils v0.0.0-20260626114624-be93311217bd
)
EOF
cat >main.go <<'EOF'
package main

import (
	"fmt"
	"os"

	"k8s.io/mount-utils"
	"k8s.io/utils/exec"
)

func main() {
	if _, err := mount.NewResizeFs(exec.New()).Resize(os.Args[1], os.Args[2]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
EOF
go mod tidy >/dev/null 2>&1 || { echo "the modules can't be had" >&2; exit 2; }
go build -o grow .

size() { df --output=size --block-size=1M "$1" | tail -1 | tr -d ' '; }

# grow_mounted makes a file system on a disk of 320 MiB, mounts it, doubles the disk, and grows the file
# system as a plugin without CAP_SYS_RESOURCE does.
grow_mounted() {
  local kind=$1 device before said
  truncate --size 320M "$kind.img"
  mkfs.$kind -q "$kind.img"
  device=$(losetup --find --show "$kind.img")
  devices+=("$device")
  mkdir "at-$kind"
  mount "$device" "at-$kind"
  before=$(size "at-$kind")
  truncate --size 640M "$kind.img"
  losetup --set-capacity "$device"
  said=$(setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource ./grow "$device" "$dir/at-$kind" 2>&1 | tr '\n' ' ') || true
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
echo "changed: ext4 is $ext4, XFS is $xfs" >&2
exit 1
