// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

const etcdStartTimeout = time.Minute

type etcdOptions struct {
	dataDir   string
	clientURL string
	peerURL   string
}

// The member never syncs its files: the cluster does not outlive its machine, and benchmarks would measure
// fsync.
func newEtcdCommand() *cobra.Command {
	var o etcdOptions
	cmd := &cobra.Command{
		Use:   "etcd",
		Short: "Run an embedded etcd member",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	cmd.Flags().StringVar(&o.dataDir, "data-dir", "", "folder of the database")
	cmd.Flags().StringVar(&o.clientURL, "listen-client-url", "", "URL that clients use")
	cmd.Flags().StringVar(&o.peerURL, "listen-peer-url", "", "URL that peers would use; etcd demands one")
	return cmd
}

func (o etcdOptions) run(cmd *cobra.Command) error {
	config, err := o.config()
	if err != nil {
		return err
	}
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	defer etcd.Close()
	select {
	case <-etcd.Server.ReadyNotify():
	case err := <-etcd.Err():
		return fmt.Errorf("start etcd: %w", err)
	case <-time.After(etcdStartTimeout):
		return fmt.Errorf("etcd does not serve after %s", etcdStartTimeout)
	}
	select {
	case <-cmd.Context().Done():
		return nil
	case <-etcd.Server.StopNotify():
		return errors.New("etcd stopped by itself")
	case err := <-etcd.Err():
		return fmt.Errorf("run etcd: %w", err)
	}
}

func (o etcdOptions) config() (*embed.Config, error) {
	client, err := url.Parse(o.clientURL)
	if err != nil {
		return nil, fmt.Errorf("--listen-client-url: %w", err)
	}
	peer, err := url.Parse(o.peerURL)
	if err != nil {
		return nil, fmt.Errorf("--listen-peer-url: %w", err)
	}
	config := embed.NewConfig()
	config.Name = "sandbox"
	config.Dir = o.dataDir
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true
	config.LogLevel = "warn"
	config.LogOutputs = []string{"stderr"}
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("etcd configuration: %w", err)
	}
	return config, nil
}
