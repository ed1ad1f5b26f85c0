package envoy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/filters/limits/meter"
)

// maxAdminBody bounds what is read of an answer of the admin interface.
const maxAdminBody = 4 << 20

// admin speaks to one Envoy's admin interface.
type admin struct {
	base   string // http://host:port
	client *http.Client
}

// newAdmin keeps no connections: a kept one would go on to speak to an Envoy from
// which another has taken the address over.
func newAdmin(addr string) admin {
	return admin{base: "http://" + addr, client: &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
}

func (a admin) call(ctx context.Context, method, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAdminBody))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("envoy admin %s: status %d", path, resp.StatusCode)
	}
	return body, err
}

// listening reports whether Envoy accepts connections on all ports. Listeners
// are listed as soon as they are known; they accept once the workers have started.
func (a admin) listening(ctx context.Context, ports []int) bool {
	stats, err := a.call(ctx, http.MethodGet, "/stats?filter="+url.QueryEscape(`^listener_manager\.workers_started$`))
	if err != nil || sumStats(string(stats), "") != 1 {
		return false
	}
	listed, err := a.call(ctx, http.MethodGet, "/listeners?format=json")
	return err == nil && listsPorts(listed, ports)
}

// epoch is the restart epoch of the Envoy that answers; -1: none answers.
func (a admin) epoch(ctx context.Context) int {
	body, err := a.call(ctx, http.MethodGet, "/server_info")
	if err != nil {
		return -1
	}
	var info struct {
		Options struct {
			Epoch int `json:"restart_epoch"`
		} `json:"command_line_options"`
	}
	if json.Unmarshal(body, &info) != nil {
		return -1
	}
	return info.Options.Epoch
}

// listsPorts reports whether the answer of /listeners?format=json has a listener
// on each port.
func listsPorts(answer []byte, ports []int) bool {
	var list struct {
		Statuses []struct {
			Address struct {
				Socket struct {
					Port int `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if json.Unmarshal(answer, &list) != nil {
		return false
	}
	have := map[int]bool{}
	for _, s := range list.Statuses {
		have[s.Address.Socket.Port] = true
	}
	for _, port := range ports {
		if !have[port] {
			return false
		}
	}
	return true
}

// activeRequests counts the requests in flight, those to the admin interface
// left out. An error counts as none: who does not answer has nothing to finish.
func (a admin) activeRequests(ctx context.Context) int {
	stats, err := a.call(ctx, http.MethodGet, "/stats?filter="+url.QueryEscape(`^http\..*\.downstream_rq_active$`))
	if err != nil {
		return 0
	}
	return sumStats(string(stats), "http.admin.")
}

// megaMisses counts, for each worker thread, how often its loop has stood still for
// as long as the bootstrap's watchdog bears. Nil: Envoy does not answer.
func (a admin) megaMisses(ctx context.Context) map[string]int {
	stats, err := a.call(ctx, http.MethodGet, "/stats?filter="+url.QueryEscape(`^server\.worker_[0-9]+\.watchdog_mega_miss$`))
	if err != nil {
		return nil
	}
	misses := map[string]int{}
	for line := range strings.Lines(string(stats)) {
		name, value, _ := strings.Cut(strings.TrimPrefix(line, "server."), ": ")
		worker, _, _ := strings.Cut(name, ".")
		misses[worker], _ = strconv.Atoi(strings.TrimSpace(value))
	}
	return misses
}

// unsentUsage reports whether Envoy has counted requests of which the control
// plane does not know yet: workers count the batches that they begin, and keysync
// those that are settled. Who does not answer has nothing to send.
func (a admin) unsentUsage(ctx context.Context) bool {
	stats, err := a.call(ctx, http.MethodGet, "/stats?filter="+url.QueryEscape(meter.BegunMetric+"|"+meter.SettledMetric))
	if err != nil {
		return false
	}
	var begun, settled strings.Builder
	for line := range strings.Lines(string(stats)) {
		if strings.Contains(line, meter.BegunMetric) {
			begun.WriteString(line)
		} else {
			settled.WriteString(line)
		}
	}
	return sumStats(begun.String(), "") > sumStats(settled.String(), "")
}

// sumStats adds up the lines "name: value" whose name does not begin with skip;
// an empty skip skips none.
func sumStats(text, skip string) int {
	sum := 0
	for _, line := range strings.Split(text, "\n") {
		name, value, ok := strings.Cut(line, ": ")
		if !ok || (skip != "" && strings.HasPrefix(name, skip)) {
			continue
		}
		n, _ := strconv.Atoi(strings.TrimSpace(value))
		sum += n
	}
	return sum
}
