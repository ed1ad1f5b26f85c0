// Package kubernetes_test renders the manifests as kubectl does, and reads them as
// the API server does: unknown fields are errors.
package kubernetes_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"sluice.dev/sluice/deploy/engines"
)

// workload is a kind of pod that the manifests make.
type workload struct {
	name     string
	replicas int32 // 0: as many as there are nodes, or a job
	labels   labels.Set
	spec     corev1.PodSpec
	job      bool
}

// cluster is all that a folder renders to.
type cluster struct {
	workloads []workload
	services  []*corev1.Service
	settings  map[string]map[string]string // of ConfigMaps by name
	budgets   []*policyv1.PodDisruptionBudget
	policies  []*networkingv1.NetworkPolicy
	products  bool // the profile platform: chat and media too
}

// render reads a folder.
func render(t *testing.T, dir string) *cluster {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{appsv1.AddToScheme, batchv1.AddToScheme, corev1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	c := &cluster{settings: map[string]map[string]string{}}
	for _, r := range resources.Resources() {
		text, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		o, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", r.CurId(), err)
			continue
		}
		c.add(t, o)
	}
	return c
}

func (c *cluster) add(t *testing.T, o runtime.Object) {
	t.Helper()
	switch o := o.(type) {
	case *appsv1.Deployment:
		c.workloads = append(c.workloads, workload{o.Name, *o.Spec.Replicas, o.Spec.Template.Labels, o.Spec.Template.Spec, false})
	case *appsv1.DaemonSet:
		c.workloads = append(c.workloads, workload{o.Name, 0, o.Spec.Template.Labels, o.Spec.Template.Spec, false})
	case *appsv1.StatefulSet:
		c.workloads = append(c.workloads, workload{o.Name, *o.Spec.Replicas, o.Spec.Template.Labels, o.Spec.Template.Spec, false})
	case *batchv1.Job:
		c.workloads = append(c.workloads, workload{o.Name, 0, o.Spec.Template.Labels, o.Spec.Template.Spec, true})
	case *corev1.Service:
		c.services = append(c.services, o)
	case *corev1.ConfigMap:
		c.settings[o.Name] = o.Data
	case *policyv1.PodDisruptionBudget:
		c.budgets = append(c.budgets, o)
	case *networkingv1.NetworkPolicy:
		c.policies = append(c.policies, o)
	case *corev1.Namespace:
		if o.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
			t.Errorf("the namespace lets any pod in: %v", o.Labels)
		}
	default:
		t.Errorf("nobody looks at a %T", o)
	}
}

// chosen are the workloads that a selector means.
func (c *cluster) chosen(set labels.Set) (list []workload) {
	for _, w := range c.workloads {
		if labels.SelectorFromSet(set).Matches(w.labels) {
			list = append(list, w)
		}
	}
	return list
}

// least is how many of something there must be, with the gateway alone and with products.
func (c *cluster) least(gateway, platform int) int {
	if c.products {
		return platform
	}
	return gateway
}

func folders(t *testing.T, f func(*testing.T, *cluster)) {
	t.Parallel()
	for _, dir := range []string{"base", "example", "gateway"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			c := render(t, dir)
			c.products = dir != "gateway"
			f(t, c)
		})
	}
}

func TestEverythingIsThere(t *testing.T) {
	folders(t, func(t *testing.T, c *cluster) {
		var names []string
		for _, w := range c.workloads {
			names = append(names, w.name)
		}
		slices.Sort(names)
		want := []string{"controlplane", "edge", "engine", "media", "migrate", "runtime", "worker"}
		if !c.products {
			want = []string{"controlplane", "edge", "migrate", "worker"}
		}
		if !slices.Equal(names, want) {
			t.Errorf("%v, want %v", names, want)
		}
		for _, name := range []string{"sluice-settings", "edge-settings"} {
			if gateway := c.settings[name]["SLUICE_PROFILE"] == "gateway"; gateway == c.products {
				t.Errorf("%s: the profile is %q", name, c.settings[name]["SLUICE_PROFILE"])
			}
		}
	})
}

// What works on files of strangers has the programs for it, where there is the media
// product, and nobody is told that there are none.
func TestWorkersOnMediaHaveThePrograms(t *testing.T) {
	folders(t, func(t *testing.T, c *cluster) {
		for _, w := range c.workloads {
			image, _, _ := strings.Cut(path.Base(w.spec.Containers[0].Image), ":")
			works := c.products && (w.name == "media" || w.name == "engine" || w.name == "worker")
			if (image == "sluice-media") != works {
				t.Errorf("%s runs %s", w.name, image)
			}
		}
		for _, p := range engines.Programs {
			if said, ok := c.settings["sluice-settings"][p.Variable]; ok {
				t.Errorf("%s is %q", p.Variable, said)
			}
		}
	})
}

// Pods keep what the restricted profile asks, and more: nothing is written but
// where it is meant to be.
func TestPodsAreHardened(t *testing.T) {
	folders(t, func(t *testing.T, c *cluster) {
		for _, w := range c.workloads {
			s := w.spec.SecurityContext
			if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || *s.RunAsUser == 0 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: %+v", w.name, s)
			}
			if *w.spec.AutomountServiceAccountToken || w.spec.HostNetwork || w.spec.HostPID {
				t.Errorf("%s may talk to the cluster, or is on its host", w.name)
			}
			for _, box := range w.spec.Containers {
				s := box.SecurityContext
				if s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Contains(s.Capabilities.Drop, "ALL") || len(s.Capabilities.Add) > 0 {
					t.Errorf("%s: %+v", w.name, s)
				}
				if box.Resources.Requests.Cpu().IsZero() || box.Resources.Requests.Memory().IsZero() || box.Resources.Limits.Memory().IsZero() {
					t.Errorf("%s has no bounds: %+v", w.name, box.Resources)
				}
			}
			for _, v := range w.spec.Volumes {
				if v.HostPath != nil {
					t.Errorf("%s mounts %s of its host", w.name, v.HostPath.Path)
				}
			}
		}
	})
}

// Whatever runs says when it is ready, and its probes ask ports that it has.
func TestProbes(t *testing.T) {
	folders(t, func(t *testing.T, c *cluster) {
		for _, w := range c.workloads {
			if w.job {
				continue
			}
			box := w.spec.Containers[0]
			for name, p := range map[string]*corev1.Probe{"startup": box.StartupProbe, "readiness": box.ReadinessProbe, "liveness": box.LivenessProbe} {
				switch {
				case p == nil:
					t.Errorf("%s has no %s probe", w.name, name)
				case p.HTTPGet != nil && !hasPort(box, p.HTTPGet.Port) || p.TCPSocket != nil && !hasPort(box, p.TCPSocket.Port):
					t.Errorf("%s: the %s probe asks a port that it has not", w.name, name)
				}
			}
		}
	})
}

func hasPort(box corev1.Container, port intstr.IntOrString) bool {
	return slices.ContainsFunc(box.Ports, func(p corev1.ContainerPort) bool { return p.Name == port.StrVal })
}

// A service leads to one workload, and to ports that it has.
func TestServicesLeadSomewhere(t *testing.T) {
	folders(t, func(t *testing.T, c *cluster) {
		for _, s := range c.services {
			list := c.chosen(s.Spec.Selector)
			if len(list) != 1 {
				t.Errorf("%s leads to %d workloads", s.Name, len(list))
				continue
			}
			for _, p := range s.Spec.Ports {
				if !hasPort(list[0].spec.Containers[0], p.TargetPort) {
					t.Errorf("%s leads to port %s, which %s has not", s.Name, p.TargetPort.StrVal, list[0].name)
				}
			}
		}
	})
}

// Addresses in the settings are those of services.
func TestSettingsNameServices(t *testing.T) {
	folders(t, func(t *testing.T, c *cluster) {
		address := regexp.MustCompile(`^(?:http://)?([a-z]+):(\d+)$`)
		found := 0
		for _, data := range c.settings {
			for name, value := range data {
				m := address.FindStringSubmatch(value)
				if m == nil {
					continue
				}
				found++
				if !slices.ContainsFunc(c.services, func(s *corev1.Service) bool {
					return s.Name == m[1] && slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return strconv.Itoa(int(p.Port)) == m[2] })
				}) {
					t.Errorf("%s is %s: there is no such service", name, value)
				}
			}
		}
		if found < c.least(3, 5) {
			t.Errorf("only %d addresses", found)
		}
	})
}

// The product finds the media engine, and publishers find it, at the ports on which it
// listens.
func TestTheEngineIsFound(t *testing.T) {
	folders(t, func(t *testing.T, c *cluster) {
		settings := c.settings["sluice-settings"]
		if !c.products {
			for name := range settings {
				if strings.Contains(name, "ENGINE") || strings.Contains(name, "INGEST") {
					t.Errorf("%s is set where there is no media", name)
				}
			}
			return
		}
		opened := map[string]bool{}
		for _, s := range c.services {
			for _, p := range s.Spec.Ports {
				if c.chosen(s.Spec.Selector)[0].name == "engine" {
					opened[s.Name+":"+strconv.Itoa(int(p.Port))+"/"+strings.ToLower(string(cmp.Or(p.Protocol, corev1.ProtocolTCP)))] = true
				}
			}
		}
		want := map[string]bool{}
		for variable, at := range map[string]string{
			"SLUICE_HLS_LISTEN": "engine:%s/tcp", "SLUICE_WEBRTC_ADDR": "engine:%s/tcp", "SLUICE_RTMP_ADDR": "ingest:%s/tcp",
			"SLUICE_SRT_ADDR": "ingest:%s/udp", "SLUICE_WEBRTC_MEDIA_ADDR": "ingest:%s/udp", "SLUICE_MOQ_ADDR": "ingest:%s/udp",
		} {
			host, port, _ := strings.Cut(settings[variable], ":")
			if want[fmt.Sprintf(at, port)] = true; host != "0.0.0.0" {
				t.Errorf("%s is %s", variable, settings[variable])
			}
		}
		if !maps.Equal(opened, want) || settings["SLUICE_ENGINE_HOST"] != "engine" || settings["SLUICE_INGEST_HOST"] == "" {
			t.Errorf("%v, want %v; %s, %s", opened, want, settings["SLUICE_ENGINE_HOST"], settings["SLUICE_INGEST_HOST"])
		}
		for _, w := range c.workloads {
			if w.name == "engine" && w.replicas != 1 {
				t.Errorf("%d engines serve one database", w.replicas)
			}
		}
	})
}

// What pods are given exists: variables that the product reads, and ConfigMaps that
// are rendered.
func TestSettingsAreKnown(t *testing.T) {
	settings, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	folders(t, func(t *testing.T, c *cluster) {
		known := func(name string) {
			if !strings.Contains(string(settings), "| `"+name+"` |") {
				t.Errorf("%s is no variable of the product", name)
			}
		}
		for _, data := range c.settings {
			for name := range data {
				known(name)
			}
		}
		for _, w := range c.workloads {
			for _, box := range w.spec.Containers {
				for _, e := range box.Env {
					known(e.Name)
				}
				for _, from := range box.EnvFrom {
					if from.ConfigMapRef != nil && c.settings[from.ConfigMapRef.Name] == nil {
						t.Errorf("%s wants settings that are not there: %+v", w.name, from)
					}
				}
			}
		}
	})
}

// Draining a node leaves one replica of each service but the media engine, of which there is
// one, and is possible at all.
func TestDisruption(t *testing.T) {
	folders(t, func(t *testing.T, c *cluster) {
		covered := map[string]bool{}
		for _, b := range c.budgets {
			for _, w := range c.chosen(b.Spec.Selector.MatchLabels) {
				covered[w.name] = true
				if int32(b.Spec.MinAvailable.IntValue()) >= w.replicas {
					t.Errorf("%s: %d of %d replicas must stay: no node could be drained", w.name, b.Spec.MinAvailable.IntValue(), w.replicas)
				}
			}
		}
		for _, w := range c.workloads {
			if w.replicas > 0 && covered[w.name] == (w.name == "engine") {
				t.Errorf("%s has a budget: %v", w.name, covered[w.name])
			}
		}
	})
}
