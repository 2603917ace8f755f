// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/doctor"
)

// What pods answer is bounded, however long they go on: the log of one container, or the
// metrics of one port, in bytes and in time, and all of them together in bytes.
const (
	maxLog      = 20 << 20
	maxAll      = 200 << 20
	logPatience = 30 * time.Second
)

var errFull = errors.New("logs and metrics are larger together than a bundle takes")

// answer reads what a pod answers, and adds it; what is larger than the bound is cut off
// there, and told.
func (x *collector) answer(ctx context.Context, name string, request *rest.Request) error {
	raw, err := x.bounded(ctx, request)
	if err != nil {
		x.failed(name, err)
		return ctx.Err()
	}
	if len(raw) > maxLog {
		raw = raw[:maxLog]
		x.failed(name, fmt.Errorf("only the first %d MiB", maxLog>>20))
	}
	x.answered += len(raw)
	return x.add(name, raw)
}

// bounded reads an answer to one byte beyond the bound.
func (x *collector) bounded(ctx context.Context, request *rest.Request) ([]byte, error) {
	if x.answered >= maxAll {
		return nil, errFull
	}
	ctx, stop := context.WithTimeout(ctx, x.patience)
	defer stop()
	stream, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(stream, maxLog+1))
}

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
	return x.answer(ctx, "logs/"+name+".log", x.client.Get().AbsPath("/api/v1/namespaces", pod.GetNamespace(), "pods", pod.GetName(), "log").
		Param("container", container).Param("previous", strconv.FormatBool(previous)).Param("timestamps", "true").
		Param("sinceSeconds", strconv.Itoa(max(1, int(since.Seconds())))).Param("limitBytes", strconv.Itoa(maxLog)))
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
			if err := x.answer(ctx, name, x.client.Get().AbsPath("/api/v1/namespaces", pod.Namespace, "pods", target, "proxy", "metrics")); err != nil {
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
