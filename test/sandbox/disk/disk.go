// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"github.com/moorage-dev/moorage/test/sandbox/disk/client"
	"github.com/moorage-dev/moorage/test/sandbox/disk/csinode"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const DefaultDriver = "disk.moorage.dev"

type Client = client.Client

type NodeConfig = csinode.Config

type NodePlugin = csinode.Plugin

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

// NewNodePlugin's Run serves until its context ends.
func NewNodePlugin(c NodeConfig) (*NodePlugin, error) { return csinode.New(c) }

func NodeID(nodeName string) string { return diskapi.NodeID(nodeName) }
