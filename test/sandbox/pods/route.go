// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const probeTimeout = 2 * time.Second

// CONNECT to a Service's cluster IP leads to a ready pod. Pods reach Services by name. ServeServices
// returns once it serves; stop ends it.
func (r *Runtime) ServeServices(socket string) (stop func(), err error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("proxy to Services: %w", err)
	}
	local, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy to Services: %w", errors.Join(err, listener.Close()))
	}
	r.mu.Lock()
	r.proxy = "http://" + local.Addr().String()
	r.mu.Unlock()
	server := &http.Server{Handler: http.HandlerFunc(r.connect), ReadHeaderTimeout: 10 * time.Second}
	var served sync.WaitGroup
	for _, l := range []net.Listener{listener, local} {
		served.Go(func() { _ = server.Serve(l) }) // ends with Close
	}
	return func() { _ = server.Close(); served.Wait() }, nil
}

func (r *Runtime) connect(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is served", http.StatusMethodNotAllowed)
		return
	}
	address, err := r.route(request.Context(), request.Host)
	if err != nil {
		r.note("no way to %s: %v", request.Host, err)
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	pod, err := (&net.Dialer{}).DialContext(request.Context(), "tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer pod.Close()
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(pod, buffered); _ = pod.(*net.TCPConn).CloseWrite() })
	both.Go(func() { _, _ = io.Copy(client, pod); _ = client.Close() })
	both.Wait()
}

func (r *Runtime) route(ctx context.Context, target string) (string, error) {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	lister := r.services
	r.mu.Unlock()
	if lister == nil {
		return "", errors.New("the Services are not known yet")
	}
	services, err := lister.List(labels.Everything())
	if err != nil {
		return "", err
	}
	for _, service := range services {
		if service.Spec.ClusterIP != host && service.Name+"."+service.Namespace+".svc" != host {
			continue
		}
		for _, p := range service.Spec.Ports {
			if strconv.Itoa(int(p.Port)) == port {
				return r.backend(ctx, service, p.TargetPort)
			}
		}
		return "", fmt.Errorf("service %s has no port %s", service.Name, port)
	}
	return "", fmt.Errorf("no service has the address %s", host)
}

func (r *Runtime) backend(ctx context.Context, service *corev1.Service, port intstr.IntOrString) (string, error) {
	errs := []error{fmt.Errorf("service %s has no ready pod", service.Name)}
	for pod, ip := range r.Pods(labels.SelectorFromSet(service.Spec.Selector)) {
		if err := probe(ctx, pod, ip); err != nil {
			errs = append(errs, err)
			continue
		}
		number, err := portNumber(pod, port)
		if err != nil {
			return "", err
		}
		return net.JoinHostPort(ip, strconv.Itoa(number)), nil
	}
	return "", errors.Join(errs...)
}

func portNumber(pod *corev1.Pod, port intstr.IntOrString) (int, error) {
	if port.Type == intstr.Int {
		return port.IntValue(), nil
	}
	for _, container := range pod.Spec.Containers {
		for _, p := range container.Ports {
			if p.Name == port.StrVal {
				return int(p.ContainerPort), nil
			}
		}
	}
	return 0, fmt.Errorf("pod %s has no port %s", pod.Name, port.StrVal)
}

func probe(ctx context.Context, pod *corev1.Pod, ip string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	for _, container := range pod.Spec.Containers {
		if container.ReadinessProbe == nil || container.ReadinessProbe.HTTPGet == nil {
			continue
		}
		get := container.ReadinessProbe.HTTPGet
		number, err := portNumber(pod, get.Port)
		if err != nil {
			return err
		}
		scheme := "http"
		if get.Scheme == corev1.URISchemeHTTPS {
			scheme = "https"
		}
		url := fmt.Sprintf("%s://%s%s", scheme, net.JoinHostPort(ip, strconv.Itoa(number)), get.Path)
		if err := ask(ctx, url); err != nil {
			return fmt.Errorf("container %s: %w", container.Name, err)
		}
	}
	return nil
}

func ask(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// The kubelet doesn't verify certificates either.
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}} //nolint:gosec // see above
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return nil
}
