// SPDX-License-Identifier: Apache-2.0

package csiaddons

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func Resource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "csiaddons.openshift.io", Version: "v1alpha1", Resource: name}
}

// Namespace is the driver's, and has the CSIAddonsNodes.
const Namespace = "disk-system"

type options struct {
	kubeconfig string
	driver     string
	csiAddress string
	nodes      string
	timeout    time.Duration
}

func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:           "csi-addons",
		Short:         "Play csi-addons' controller of NetworkFences and CSIAddonsNodes",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.run(ctx)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the API server (required)")
	f.StringVar(&o.driver, "driver", "", "CSI driver name (required)")
	f.StringVar(&o.csiAddress, "csi-address", "", "socket of the driver's controller part (required)")
	f.StringVar(&o.nodes, "nodes", "", "folder with a kubelet's folder for each node (required)")
	f.DurationVar(&o.timeout, "timeout", 3*time.Minute, "longest time to wait for the driver")
	return cmd
}

func (o options) run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("csi-addons: read the kubeconfig: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("csi-addons: %w", err)
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("csi-addons: %w", err)
	}
	driver, err := dial(o.csiAddress)
	if err != nil {
		return err
	}
	defer driver.Close()
	factory, own := informers.NewSharedInformerFactory(kube, 0), dynamicinformer.NewDynamicSharedInformerFactory(objects, 0)
	classes := own.ForResource(Resource("networkfenceclasses"))
	fences, err := newFences(o, objects, driver, own.ForResource(Resource("networkfences")), classes)
	if err != nil {
		return err
	}
	sidecars, err := newSidecars(o, objects, own.ForResource(Resource("csiaddonsnodes")), classes, factory.Core().V1().Nodes())
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	own.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	own.WaitForCacheSync(ctx.Done())
	go fences.run(ctx)
	go sidecars.run(ctx)
	<-ctx.Done()
	return nil
}

func dial(socket string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("csi-addons: reach the driver: %w", err)
	}
	return conn, nil
}

// handle's key is that of each object that is there, changes or goes.
func handle(informer cache.SharedIndexInformer, f func(key string, before, after any)) error {
	keyed := func(before, after any) {
		object := after
		if object == nil {
			object = before
		}
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			f(key, before, after)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { keyed(nil, object) },
		UpdateFunc: keyed,
		DeleteFunc: func(object any) { keyed(object, nil) },
	})
	if err != nil {
		return fmt.Errorf("csi-addons: watch: %w", err)
	}
	return nil
}
