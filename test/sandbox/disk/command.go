// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

type serviceOptions struct {
	listen        string
	csiEndpoint   string
	kubeconfig    string
	driver        string
	slots         int
	attachLatency time.Duration
	detachLatency time.Duration
	parallel      int
	stateDir      string
	realDir       string
	lenient       bool
	listVolumes   bool
	getVolume     bool
	volumeHealth  bool
	zones         bool

	snapshots, groupSnapshots, clones, expansion bool
	attachFor, detachFor                         string
	copyLatency, expandLatency                   time.Duration
	copyInBackground                             bool
}

func NewServiceCommand() *cobra.Command {
	var o serviceOptions
	cmd := &cobra.Command{
		Use:   "disk-service",
		Short: "Run the simulated disk service with its CSI controller and its judge",
		Long: `Run the simulated disk service: a cloud's block storage that any CSI sidecar can
use, with faults that can be set while it runs, and a judge of all calls it gets.
Its state outlives the process: started again with the same --state-dir it has the
disks, attachments, faults and log that it had.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.run(ctx, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "address of the admin API; with port 0 any free one, which the first line of output names")
	f.StringVar(&o.csiEndpoint, "csi-endpoint", "", "unix socket of the CSI Identity and Controller services, such as unix:///run/csi.sock (required)")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the provisioner; without it there is none")
	f.StringVar(&o.driver, "driver", DefaultDriver, "CSI driver name")
	f.IntVar(&o.slots, "slots", 8, "volumes that a node can attach, unless the node says otherwise")
	f.DurationVar(&o.attachLatency, "attach-latency", 0, "how long an attach takes")
	f.DurationVar(&o.detachLatency, "detach-latency", 0, "how long a detach takes")
	f.IntVar(&o.parallel, "parallel", 0, "attaches and detaches that are carried out at a time, the others wait; 0 is any number")
	f.StringVar(&o.stateDir, "state-dir", "", "folder of the journal (required)")
	f.StringVar(&o.realDir, "real-dir", "", "folder of real disks, which are attached as loop devices; without it disks are simulated. It needs root")
	f.BoolVar(&o.lenient, "lenient", false, "attach exclusive disks twice and past the limit instead of refusing, leaving it to the judge")
	f.BoolVar(&o.listVolumes, "list-volumes", false, "offer LIST_VOLUMES and LIST_VOLUMES_PUBLISHED_NODES")
	f.BoolVar(&o.getVolume, "get-volume", false, "offer GET_VOLUME")
	f.BoolVar(&o.volumeHealth, "volume-health", false, "offer GET_VOLUME_HEALTH and LIST_VOLUME_HEALTH")
	f.BoolVar(&o.zones, "zones", false, "offer VOLUME_ACCESSIBILITY_CONSTRAINTS: a disk is in a zone, and only nodes of that zone can have it")
	f.BoolVar(&o.snapshots, "snapshots", false, "offer CREATE_DELETE_SNAPSHOT and LIST_SNAPSHOTS")
	f.BoolVar(&o.groupSnapshots, "group-snapshots", false, "offer CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT")
	f.BoolVar(&o.clones, "clones", false, "offer CLONE_VOLUME")
	f.BoolVar(&o.expansion, "expansion", false, "offer EXPAND_VOLUME; offline if --detach-for has expansion")
	f.StringVar(&o.attachFor, "attach-for", "", "operations that are refused unless the volume is attached: snapshot, clone, expansion, with commas")
	f.StringVar(&o.detachFor, "detach-for", "", "operations that are refused unless the volume is attached nowhere")
	f.DurationVar(&o.copyLatency, "copy-latency", 0, "how long a snapshot, a clone or a restore takes")
	f.DurationVar(&o.expandLatency, "expand-latency", 0, "how long an expansion takes at the storage")
	f.BoolVar(&o.copyInBackground, "copy-in-background", false, "answer CreateSnapshot at once, with a snapshot that is not ready, and copy then")
	return cmd
}
