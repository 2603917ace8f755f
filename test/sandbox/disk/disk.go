// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"github.com/moorage-dev/moorage/test/sandbox/disk/client"
	"github.com/moorage-dev/moorage/test/sandbox/disk/csinode"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// DefaultDriver is the CSI driver's name unless another is given.
const DefaultDriver = "disk.moorage.dev"

// Client is a client of the service's admin API.
type Client = client.Client

// NodeConfig sets up a NodePlugin.
type NodeConfig = csinode.Config

// NodePlugin is the node part of the driver: one per kubelet.
type NodePlugin = csinode.Plugin

// The client's types; see package diskapi.
type (
	Entry       = diskapi.Entry
	Filter      = diskapi.Filter
	Fault       = diskapi.Fault
	FaultStatus = diskapi.FaultStatus
	Violation   = diskapi.Violation
	Disk        = diskapi.Disk
	Node        = diskapi.Node
	Stats       = diskapi.Stats
)

// NewNodePlugin returns the node part of the driver. Its Run serves until its
// context ends.
func NewNodePlugin(c NodeConfig) (*NodePlugin, error) { return csinode.New(c) }

// NodeID is the CSI node ID of the node with this Kubernetes name.
func NodeID(nodeName string) string { return diskapi.NodeID(nodeName) }
