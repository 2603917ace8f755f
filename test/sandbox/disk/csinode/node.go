// SPDX-License-Identifier: Apache-2.0

package csinode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/moorage-dev/moorage/test/sandbox/disk/client"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (p *Plugin) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := required("volume_id", r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	if r.GetVolumeCapability() == nil {
		return nil, status.Error(codes.InvalidArgument, "volume_capability is missing")
	}
	if r.GetVolumeCapability().GetBlock() != nil && !p.config.Block && p.mounts == nil {
		return nil, status.Errorf(codes.InvalidArgument, "volume %s: block volumes can be attached but not staged on simulated disks: use volumeMode Filesystem", r.GetVolumeId())
	}
	if err := p.checkBoot(ctx); err != nil {
		return nil, err
	}
	want := volume{StagingPath: r.GetStagingTargetPath(), Context: r.GetPublishContext()}
	have, again := p.staged.get(r.GetVolumeId())
	if again && have.StagingPath != want.StagingPath {
		return nil, status.Errorf(codes.AlreadyExists, "volume %s is staged at %s", r.GetVolumeId(), have.StagingPath)
	}
	again = again && maps.Equal(have.Context, want.Context)
	return &csi.NodeStageVolumeResponse{}, p.perform(ctx, diskapi.Request{
		Call: diskapi.NodeStage, Volume: r.GetVolumeId(),
		Args: diskapi.Args{
			Path: want.StagingPath, Context: want.Context, Again: again,
			AccessMode: r.GetVolumeCapability().GetAccessMode().GetMode().String(),
		},
	}, func() error {
		if p.mounts != nil {
			if err := p.mounts.stage(r); err != nil {
				return fmt.Errorf("stage volume %s: %w", r.GetVolumeId(), err)
			}
		}
		return p.staged.put(r.GetVolumeId(), want)
	})
}

func (p *Plugin) NodeUnstageVolume(ctx context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := required("volume_id", r.GetVolumeId(), "staging_target_path", r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	if err := p.checkBoot(ctx); err != nil {
		return nil, err
	}
	_, have := p.staged.get(r.GetVolumeId())
	last, ended := p.writers.end(r.GetVolumeId())
	err := p.perform(ctx, diskapi.Request{
		Call: diskapi.NodeUnstage, Volume: r.GetVolumeId(),
		Args: diskapi.Args{Path: r.GetStagingTargetPath(), Again: !have, Write: last},
	}, func() error {
		if p.mounts != nil {
			if err := p.mounts.unstage(r.GetVolumeId(), r.GetStagingTargetPath()); err != nil {
				return fmt.Errorf("unstage volume %s: %w", r.GetVolumeId(), err)
			}
		}
		return p.staged.remove(r.GetVolumeId())
	})
	ended(err)
	return &csi.NodeUnstageVolumeResponse{}, err
}

func (p *Plugin) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := required("volume_id", r.GetVolumeId(), "target_path", r.GetTargetPath(), "staging_target_path", r.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	if r.GetVolumeCapability() == nil {
		return nil, status.Error(codes.InvalidArgument, "volume_capability is missing")
	}
	if err := p.checkBoot(ctx); err != nil {
		return nil, err
	}
	_, statErr := os.Lstat(r.GetTargetPath())
	_, isStaged := p.staged.get(r.GetVolumeId())
	return &csi.NodePublishVolumeResponse{}, p.perform(ctx, diskapi.Request{
		Call: diskapi.NodePublish, Volume: r.GetVolumeId(),
		Args: diskapi.Args{
			Path: r.GetTargetPath(), Context: r.GetPublishContext(), ReadOnly: r.GetReadonly(),
			Again: statErr == nil, NotStaged: !isStaged, Beside: p.staged.publishedBeside(r.GetTargetPath(), r.GetVolumeId()),
			AccessMode: r.GetVolumeCapability().GetAccessMode().GetMode().String(),
		},
	}, func() error {
		if err := makeTarget(r.GetTargetPath(), r.GetVolumeCapability().GetBlock() != nil); err != nil {
			return fmt.Errorf("make the target: %w", err)
		}
		if p.mounts != nil {
			if err := p.mounts.publish(r); err != nil {
				return fmt.Errorf("publish volume %s: %w", r.GetVolumeId(), err)
			}
		}
		mode := ""
		if writes(r) {
			mode = r.GetVolumeCapability().GetAccessMode().GetMode().String()
			defer p.writers.soon()
		}
		return p.staged.publish(r.GetTargetPath(), r.GetVolumeId(), mode)
	})
}

func writes(r *csi.NodePublishVolumeRequest) bool {
	mode := r.GetVolumeCapability().GetAccessMode().GetMode()
	return !r.GetReadonly() &&
		mode != csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY && mode != csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY
}

func (p *Plugin) NodeUnpublishVolume(ctx context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := required("volume_id", r.GetVolumeId(), "target_path", r.GetTargetPath()); err != nil {
		return nil, err
	}
	if err := p.checkBoot(ctx); err != nil {
		return nil, err
	}
	_, statErr := os.Lstat(r.GetTargetPath())
	var last *diskapi.WriteMark
	ended := func(error) {}
	if volume, ok := p.staged.lastWriter(r.GetTargetPath()); ok && volume == r.GetVolumeId() {
		if err := p.writers.resume(ctx, volume); err != nil {
			return nil, status.Errorf(codes.Unavailable, "flush volume %s: %v", volume, err)
		}
		last, ended = p.writers.end(volume)
	}
	err := p.perform(ctx, diskapi.Request{
		Call: diskapi.NodeUnpublish, Volume: r.GetVolumeId(),
		Args: diskapi.Args{Path: r.GetTargetPath(), Again: errors.Is(statErr, fs.ErrNotExist), Write: last},
	}, func() error {
		if p.mounts != nil {
			if err := p.mounts.unpublish(r.GetVolumeId(), r.GetTargetPath()); err != nil {
				return fmt.Errorf("unpublish volume %s: %w", r.GetVolumeId(), err)
			}
		}
		// Not RemoveAll: a folder that isn't empty holds something that isn't ours.
		if err := os.Remove(r.GetTargetPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the target: %w", err)
		}
		return p.staged.unpublish(r.GetTargetPath())
	})
	ended(err)
	return &csi.NodeUnpublishVolumeResponse{}, err
}

// The kubelet names a mounted path of the volume.
func (p *Plugin) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if !p.config.Expansion {
		return nil, status.Error(codes.Unimplemented, "this driver does not offer EXPAND_VOLUME")
	}
	if err := required("volume_id", r.GetVolumeId(), "volume_path", r.GetVolumePath()); err != nil {
		return nil, err
	}
	if err := p.checkBoot(ctx); err != nil {
		return nil, err
	}
	size := r.GetCapacityRange().GetRequiredBytes()
	_, isStaged := p.staged.get(r.GetVolumeId())
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, p.perform(ctx, diskapi.Request{
		Call: diskapi.NodeExpand, Volume: r.GetVolumeId(),
		Args: diskapi.Args{Path: r.GetVolumePath(), SizeBytes: size, NotStaged: !isStaged},
	}, func() error {
		if p.mounts == nil {
			return nil
		}
		return p.mounts.expand(r.GetVolumeId(), r.GetVolumePath())
	})
}

func makeTarget(path string, block bool) error {
	if !block {
		return os.MkdirAll(path, 0o750)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o640)
	if err != nil {
		return err
	}
	return f.Close()
}

// perform does the node's part after the service agrees. A fault that holds comes after all of it.
func (p *Plugin) perform(ctx context.Context, r diskapi.Request, do func() error) error {
	a, err := p.ask(ctx, r)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if a.Hold == "" {
		return nil
	}
	r.Node = p.config.nodeID()
	if err := p.service.Held(ctx, a.Hold, r); err != nil {
		return status.Error(codes.Unavailable, err.Error())
	}
	return nil
}

// A service that can't be reached is Unavailable: the kubelet takes that as "may have happened".
func (p *Plugin) ask(ctx context.Context, r diskapi.Request) (diskapi.Answer, error) {
	r.Node = p.config.nodeID()
	a, err := p.service.Do(ctx, r)
	if err != nil {
		return a, status.Error(codes.Unavailable, err.Error())
	}
	return a, a.Err()
}

// checkBoot compares the boot count once in a process: a machine that is switched off ends the process.
func (p *Plugin) checkBoot(ctx context.Context) error {
	p.bootMu.Lock()
	defer p.bootMu.Unlock()
	if p.bootSet {
		return nil
	}
	n, err := p.service.Node(ctx, p.config.nodeID())
	if refused := (*client.Error)(nil); errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		// Not announced yet: it was never fenced either.
		err = nil
	}
	if err != nil {
		return status.Errorf(codes.Unavailable, "ask the disk service about node %s: %v", p.config.NodeName, err)
	}
	if err := p.staged.booted(n.Boot); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	p.bootSet = true
	return nil
}

func required(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return status.Errorf(codes.InvalidArgument, "%s is missing", pairs[i])
		}
	}
	return nil
}
