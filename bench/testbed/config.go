package testbed

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/e2e/freeport"
)

// Object is a JSON Object of Envoy's configuration.
type Object = map[string]any

// Config is what an Envoy is made of that does as the edge does, from a file.
type Config struct {
	Manager Object            // the gateway's connection manager
	Route   Object            // its routes
	Cluster Object            // of the upstream
	Boot    Object            // the bootstrap
	found   map[string]Object // filters that the edge discovers, by name
}

// Config reads the configuration that the edge runs on at present.
func (b *Bed) Config() (*Config, error) {
	var dump struct{ Configs []Object }
	res, err := http.Get("http://" + b.Env["SLUICE_ENVOY_ADMIN_ADDR"] + "/config_dump")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&dump); err != nil {
		return nil, err
	}
	c := &Config{found: map[string]Object{}}
	for _, section := range dump.Configs {
		c.read(section)
	}
	if c.Manager == nil || c.Route == nil || c.Cluster == nil || c.Boot == nil {
		return nil, errors.New("the edge's configuration lacks its listener, routes, cluster or bootstrap")
	}
	return c, nil
}

// read takes what it wants of a section of the dump.
func (c *Config) read(section Object) {
	for _, e := range entries(section, "dynamic_listeners") {
		if e["name"] == "gateway" {
			l := e["active_state"].(Object)["listener"].(Object)
			c.Manager = l["filter_chains"].([]any)[0].(Object)["filters"].([]any)[0].(Object)["typed_config"].(Object)
		}
	}
	for _, e := range entries(section, "dynamic_route_configs") {
		if r := e["route_config"].(Object); r["name"] == "gateway" {
			c.Route = r
		}
	}
	for _, e := range entries(section, "dynamic_active_clusters") {
		if cl := e["cluster"].(Object); cl["name"] == "bench" {
			c.Cluster = cl
		}
	}
	for _, e := range entries(section, "ecds_filters") {
		f := e["ecds_filter"].(Object)
		c.found[f["name"].(string)] = f["typed_config"].(Object)
	}
	if boot, ok := section["bootstrap"].(Object); ok {
		c.Boot = boot
	}
}

func entries(section Object, name string) (list []Object) {
	all, _ := section[name].([]any)
	for _, e := range all {
		list = append(list, e.(Object))
	}
	return list
}

// LeaveOut removes filters whose names begin so.
func (c *Config) LeaveOut(names ...string) {
	kept := slices.DeleteFunc(slices.Clone(c.Manager["http_filters"].([]any)), func(f any) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(f.(Object)["name"].(string), name) })
	})
	c.Manager["http_filters"] = kept
}

// Text is c as the configuration of an Envoy of its own at addr, which proxies to
// upstream alone and has its filters' programs in dir.
func (c *Config) Text(addr, upstream, dir string) (string, error) {
	text, err := json.Marshal(c.static(addr, upstream, dir))
	return string(text), err
}

func (c *Config) static(addr, upstream, dir string) Object {
	manager, cluster, boot := maps.Clone(c.Manager), maps.Clone(c.Cluster), maps.Clone(c.Boot)
	delete(manager, "rds")
	delete(c.Route, "@type")
	manager["route_config"] = c.Route
	for _, f := range manager["http_filters"].([]any) {
		f := f.(Object)
		if found := c.found[f["name"].(string)]; found != nil {
			delete(f, "config_discovery")
			f["typed_config"] = found
		}
	}
	delete(cluster, "eds_cluster_config")
	delete(cluster, "@type")
	cluster["type"] = "STATIC"
	cluster["load_assignment"] = Object{"cluster_name": "bench", "endpoints": []any{Object{"lb_endpoints": []any{
		Object{"endpoint": Object{"address": address(upstream)}}}}}}
	for _, f := range []string{"dynamic_resources", "admin", "node"} {
		delete(boot, f)
	}
	clusters := append(slices.Clone(boot["static_resources"].(Object)["clusters"].([]any)), cluster)
	boot["static_resources"] = Object{
		"listeners": []any{Object{"address": address(addr), "filter_chains": []any{Object{"filters": []any{
			Object{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}}}}}},
		"clusters": clusters,
	}
	withPrograms(boot, dir)
	return boot
}

// withPrograms has the programs in v come from dir.
func withPrograms(v any, dir string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			withPrograms(e, dir)
		}
	case Object:
		if file, ok := v["filename"].(string); ok {
			v["filename"] = filepath.Join(dir, filepath.Base(file))
		}
		for _, e := range v {
			withPrograms(e, dir)
		}
	}
}

func address(addr string) Object {
	host, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	return Object{"socket_address": Object{"address": host, "port_value": n}}
}

// Redirect leads a cluster with one address to another, and returns the one it had.
func Redirect(cluster Object, addr string) (was string) {
	endpoints := cluster["load_assignment"].(Object)["endpoints"].([]any)[0].(Object)
	endpoint := endpoints["lb_endpoints"].([]any)[0].(Object)["endpoint"].(Object)
	socket := endpoint["address"].(Object)["socket_address"].(Object)
	was = fmt.Sprintf("%v:%v", socket["address"], socket["port_value"])
	endpoint["address"] = address(addr)
	return was
}

// Static starts an Envoy of its own with the configuration c, whose filters' programs
// are in dir. It may not be ready.
func (b *Bed) Static(name string, c *Config, dir string) (*Subject, error) {
	addrs, err := freeport.Addrs(1)
	if err != nil {
		return nil, err
	}
	text, err := c.Text(addrs[0], b.Upstream, dir)
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(addrs[0])
	pid, err := b.Envoy("static-"+port, text)
	if err != nil {
		return nil, err
	}
	s := &Subject{Name: name, PID: pid, Request: b.Edge.Request}
	s.Request.Addr = addrs[0]
	return s, nil
}

// Programs is the folder with the edge's own filters.
func Programs() string { return os.Getenv("SLUICE_WASM_DIR") }
