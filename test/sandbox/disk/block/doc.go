// SPDX-License-Identifier: Apache-2.0

// Package block holds the disks of a disk service whose disks are real: a disk is a sparse file,
// and a disk that is attached to a node is a loop device over that file, which only that node is
// told of.
//
// Two loop devices over one file are two machines with one disk: each has its own cache, and a
// file system that both mount is destroyed. A device that is detached while it is mounted stays with
// who has mounted it, and goes when that unmounts, as a network disk does whose storage
// does not know who writes: nobody but Kubernetes is in the way of two writers.
//
//	reads    the operations of the disk service, and which loop devices the kernel has
//	decides  nothing
//	writes   files, loop devices, and a link to the device for each node that has one
//
// A folder holds all of it: files/VOLUME and snapshots/HANDLE are what is stored, at/NODE/VOLUME.disk
// is a hard link to the file, by which the kernel names the device's owner, and at/NODE/VOLUME is
// a symbolic link to the device. The process that attaches keeps every device open, and the
// kernel frees a device that nobody has open: when all is killed, nothing stays.
package block
