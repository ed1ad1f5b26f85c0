package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Path is one path of the engine, as its API tells.
type Path struct {
	Name   string `json:"name"`
	Ready  bool   `json:"ready"`
	Source *struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"source"`
	Tracks   []string `json:"tracks"`
	Received uint64   `json:"bytesReceived"`
}

// API calls the engine's control API.
type API struct {
	Base   string // such as http://127.0.0.1:9997
	Client *http.Client
}

// pathsPerPage is how many paths are asked for at a time.
const pathsPerPage = 500

// maxAnswer bounds an answer of the API, in bytes.
const maxAnswer = 16 << 20

// Ready returns the paths that somebody publishes to.
func (a API) Ready(ctx context.Context) ([]Path, error) {
	var found []Path
	for page, pages := 0, 1; page < pages; page++ {
		var list struct {
			PageCount int    `json:"pageCount"`
			Items     []Path `json:"items"`
		}
		err := a.call(ctx, http.MethodGet, "/v3/paths/list?itemsPerPage="+strconv.Itoa(pathsPerPage)+"&page="+strconv.Itoa(page), &list)
		if err != nil {
			return nil, err
		}
		pages = list.PageCount
		for _, p := range list.Items {
			if p.Ready && p.Source != nil && strings.HasPrefix(p.Name, folder) {
				found = append(found, p)
			}
		}
	}
	return found, nil
}

// Alive is an error while the engine does not answer.
func (a API) Alive(ctx context.Context) error {
	return a.call(ctx, http.MethodGet, "/v3/paths/list?itemsPerPage=1", nil)
}

// kicks are the API's names of the connections that it can close.
var kicks = map[string]string{"rtmpConn": "rtmpconns", "srtConn": "srtconns", "webRTCSession": "webrtcsessions", "rtspSession": "rtspsessions"}

// Kick closes the connection of a path's publisher.
func (a API) Kick(ctx context.Context, p Path) error {
	kind, ok := kicks[p.Source.Type]
	if !ok {
		return fmt.Errorf("cannot close a publisher of type %q", p.Source.Type)
	}
	return a.call(ctx, http.MethodPost, "/v3/"+kind+"/kick/"+p.Source.ID, nil)
}

// call sends one request and decodes the answer into into, unless that is nil.
// Any status but 200 is an error.
func (a API) call(ctx context.Context, method, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, a.Base+path, nil)
	if err != nil {
		return err
	}
	res, err := a.Client.Do(req)
	if err != nil {
		return fmt.Errorf("ask the media engine: %w", err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("ask the media engine: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("ask the media engine: %s %s: status %d", method, path, res.StatusCode)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}
