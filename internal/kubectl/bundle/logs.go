// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/doctor"
)

// maxLog bounds the log of one container, in bytes.
const maxLog = 20 << 20

// schemes are how the API server reaches the ports of Moorage's components, by their names;
// some of them serve metrics.
var schemes = map[string]string{"http": "", "health": "", "https": "https:"}

// logs reads the logs of Moorage's own containers, those before their last restart, too,
// and their metrics, through the API server.
func (x *collector) logs(ctx context.Context, since time.Duration) error {
	for _, u := range x.pods {
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &pod); err != nil {
			x.failed(u.GetNamespace()+"/"+u.GetName(), err)
			continue
		}
		for _, status := range pod.Status.ContainerStatuses {
			if err := x.log(ctx, u, status.Name, since, false); err != nil {
				return err
			}
			if status.RestartCount > 0 {
				if err := x.log(ctx, u, status.Name, since, true); err != nil {
					return err
				}
			}
		}
		if err := x.metrics(ctx, &pod); err != nil {
			return err
		}
	}
	return nil
}

func (x *collector) log(ctx context.Context, pod unstructured.Unstructured, container string, since time.Duration, previous bool) error {
	name := pod.GetNamespace() + "_" + pod.GetName() + "_" + container
	if previous {
		name += "_previous"
	}
	raw, err := x.client.Get().AbsPath("/api/v1/namespaces", pod.GetNamespace(), "pods", pod.GetName(), "log").
		Param("container", container).Param("previous", strconv.FormatBool(previous)).Param("timestamps", "true").
		Param("sinceSeconds", strconv.Itoa(max(1, int(since.Seconds())))).Param("limitBytes", strconv.Itoa(maxLog)).DoRaw(ctx)
	if err != nil {
		x.failed("logs/"+name+".log", err)
		return ctx.Err()
	}
	return x.add("logs/"+name+".log", raw)
}

// metrics asks a pod for its metrics, at each of its ports that may have them.
func (x *collector) metrics(ctx context.Context, pod *corev1.Pod) error {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			scheme, ok := schemes[port.Name]
			if !ok {
				continue
			}
			name := "metrics/" + pod.Namespace + "_" + pod.Name + "_" + port.Name + ".txt"
			target := scheme + pod.Name + ":" + strconv.Itoa(int(port.ContainerPort))
			raw, err := x.client.Get().AbsPath("/api/v1/namespaces", pod.Namespace, "pods", target, "proxy", "metrics").DoRaw(ctx)
			if err == nil {
				err = x.add(name, raw)
			} else {
				x.failed(name, err)
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// doctor adds what doctor says of the cluster.
func (x *collector) doctor(ctx context.Context, c *cluster.Cluster) error {
	const name = "reports/doctor.json"
	report, err := doctor.Examine(ctx, c, false)
	if err != nil {
		x.failed(name, err)
		return ctx.Err()
	}
	return x.to.AddJSON(name, report)
}

// failed notes a part that could not be had.
func (x *collector) failed(part string, err error) {
	x.about.Failed[part] = err.Error()
	x.tell("not read: %s: %v", part, err)
}
