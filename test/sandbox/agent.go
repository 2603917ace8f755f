// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/moorage-dev/moorage/test/sandbox/disk/csinode"
	"github.com/moorage-dev/moorage/test/sandbox/internal/link"
)

const moorageNode = "moorage-node"

// MoorageNode's component lives apart from the node's process, as a pod outlives its kubelet.
func MoorageNode(node string) string { return moorageNode + "-" + node }

// It looks every second, since the kernel does not report changed files.
func agentComponent(s *site, node string) component {
	root := filepath.Join(s.nodes, node)
	return realAgent(s, component{
		name: MoorageNode(node), command: moorageNode, node: node, restart: true,
		args: []string{
			"--kubeconfig=" + s.kubeconfig(MoorageNode(node)),
			"--kubelet-root=" + root,
			"--mounts=" + filepath.Join(root, "plugins", DriverName, csinode.MountTable),
			"--boot-id-file=" + s.bootFile(node),
			"--rescan=1s",
		},
	})
}

func agents(s *site) []component {
	var list []component
	for i := range s.options.Nodes {
		if s.options.MoorageNode {
			list = append(list, agentComponent(s, NodeName(i+1)))
		}
	}
	return list
}

// The identities need their Nodes.
func (s *site) linkAgents() error {
	for _, agent := range agents(s) {
		l, err := link.Open("127.0.0.1:0", s.apiAddr)
		if err != nil {
			return err
		}
		s.links[agent.name] = l
	}
	return nil
}

func (c *Cluster) startAgents(ctx context.Context) error {
	for _, agent := range agents(c.site) {
		if err := c.identify(ctx, agent); err != nil {
			return err
		}
		if err := c.launch(agent.name); err != nil {
			return err
		}
	}
	return c.view.Await(ctx, func() error {
		for _, agent := range agents(c.site) {
			word := c.view.NodeMountReports(agent.node)
			if word == nil {
				return fmt.Errorf("there is no NodeMountReport %s; the log is %s", agent.node, c.site.logPath(agent.name))
			}
			if _, looked, _ := unstructured.NestedString(word.Object, "status", "observed"); !looked {
				return fmt.Errorf("%s has not said what it has", agent.node)
			}
		}
		return nil
	})
}

func (c *Cluster) identify(ctx context.Context, agent component) error {
	token, err := c.NodeToken(ctx, agent.node)
	if err != nil {
		return err
	}
	return WriteKubeconfig(c.site.kubeconfig(agent.name), "https://"+c.site.links[agent.name].Addr(), c.site.authority.PEM, token)
}

func (c *Cluster) NodeToken(ctx context.Context, name string) (string, error) {
	node := c.view.Node(name)
	if node == nil {
		return "", fmt.Errorf("there is no node %s", name)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(certValidity / time.Second)), // it is not renewed here, as a kubelet does
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: node.Name, UID: node.UID},
	}}
	token, err := c.client.CoreV1().ServiceAccounts(MoorageNamespace).CreateToken(ctx, moorageNode, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("token of moorage-node at %s: %w", name, err)
	}
	return token.Status.Token, nil
}

// The new token is read when moorage-node starts.
func (c *Cluster) Identify(ctx context.Context, node string) error {
	return c.identify(ctx, agentComponent(c.site, node))
}

// KubeletFolder is a kubelet's --root-dir. It stays when the node is killed.
func (c *Cluster) KubeletFolder(node string) string { return filepath.Join(c.site.nodes, node) }

// StagingPath is where a kubelet stages a file system, below its folder (k8s.io/kubernetes
// pkg/volume/csi/csi_attacher.go makeDeviceMountPath).
func StagingPath(handle string) string {
	return fmt.Sprintf("plugins/kubernetes.io/csi/%s/%x/globalmount", DriverName, sha256.Sum256([]byte(handle)))
}

// Unstage works like a person at the machine: the driver unstages the volume, and the kubelet's record is
// removed. The node's NodeMountReport has the path, below the kubelet's folder.
func (c *Cluster) Unstage(ctx context.Context, node, handle, staging string) error {
	if err := c.isNode(node); err != nil {
		return err
	}
	root := c.KubeletFolder(node)
	conn, err := grpc.NewClient("unix://"+filepath.Join(root, "plugins", DriverName, "csi.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("reach the driver of %s: %w", node, err)
	}
	defer conn.Close()
	_, err = csi.NewNodeClient(conn).NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{
		VolumeId: handle, StagingTargetPath: filepath.Join(root, staging),
	}, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("unstage volume %s at %s: %w", handle, node, err)
	}
	if path.Base(staging) != "globalmount" {
		return errors.New("the path of a volume with a file system ends in globalmount: " + staging)
	}
	return os.RemoveAll(filepath.Join(root, path.Dir(staging)))
}
