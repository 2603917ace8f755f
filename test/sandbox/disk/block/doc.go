// SPDX-License-Identifier: Apache-2.0

// Package block holds real disks for the disk service. A disk is a sparse file. A disk at a node is a
// loop device over the file, and only this node is told of the device.
//
// Two loop devices over one file are two machines with one disk: each has its own cache, and a
// file system that both mount is destroyed. A device that is detached while it is mounted stays
// until it is unmounted, as with network storage that knows no writers: only Kubernetes keeps two
// writers apart.
//
//	reads    the operations of the disk service, and which loop devices the kernel has
//	decides  nothing
//	writes   files, loop devices, and a link to the device for each node that has one
//
// One folder holds it all. files/VOLUME and snapshots/HANDLE store the contents. at/NODE/VOLUME.disk
// is a hard link to the file: its path tells the device's owner. at/NODE/VOLUME is a symbolic link
// to the device. The process that attaches keeps every device open, and the kernel frees a device
// after its last user: nothing stays after the processes were killed.
package block
