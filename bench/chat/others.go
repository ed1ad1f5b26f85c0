package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/e2e/freeport"
	"sluice.dev/sluice/e2e/harness"
)

// pins is the folder with the pinned versions of other gateways.
const pins = "bench/chat/others"

// other is a public gateway of the same kind that is measured beside ours.
type other struct {
	name    string
	lock    string // the file of pins that says what install installs
	install string // for sh, in the folder of the installation
	// start is what to run there. PORT and MODEL stand for where it listens and
	// the model's base URL.
	start []string
	// config is written to a file named config.yaml; empty: none.
	config string
	key    string
	extra  []string // headers of requests, as Name:value
}

// others are taken at their defaults, without a database. Portkey 1.15.2 answers
// every stream with 500 ("TypeError: immutable") on Node 20 and 22: it stands
// here so that the table says so, and shows when a later version does better.
var others = []other{
	{
		name: "LiteLLM", lock: "requirements.txt", key: "sk-bench",
		install: "python3 -m venv venv && venv/bin/pip install -q -r requirements.txt",
		start:   []string{"venv/bin/litellm", "--config", "config.yaml", "--host", "127.0.0.1", "--port", "PORT"},
		config: `model_list:
  - model_name: m
    litellm_params: {model: openai/m, api_base: "MODEL", api_key: none}
general_settings: {master_key: sk-bench}
`,
	},
	{
		name: "Portkey", lock: "package-lock.json", key: "none",
		install: "npm ci --no-audit --no-fund --loglevel=error",
		start:   []string{"node", "node_modules/@portkey-ai/gateway/build/start-server.js", "--port=PORT", "--headless"},
		extra:   []string{"x-portkey-provider:openai", "x-portkey-custom-host:MODEL"},
	},
}

// begin installs the gateway, unless it is there, and starts it in front of the
// model. stop ends it.
func (o other) begin(model string) (s *subject, stop func(), err error) {
	dir, err := o.installed()
	if err != nil {
		return nil, nil, err
	}
	addrs, err := freeport.Addrs(1)
	if err != nil {
		return nil, nil, err
	}
	_, port, _ := net.SplitHostPort(addrs[0])
	fill := strings.NewReplacer("PORT", port, "MODEL", model).Replace
	if o.config != "" {
		if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(fill(o.config)), 0o600); err != nil {
			return nil, nil, err
		}
	}
	cmd := exec.Command(o.start[0])
	for _, a := range o.start[1:] {
		cmd.Args = append(cmd.Args, fill(a))
	}
	if strings.Contains(o.start[0], "/") {
		cmd.Path = filepath.Join(dir, o.start[0])
	}
	cmd.Dir = dir
	p, err := harness.Start(cmd)
	if err != nil {
		return nil, nil, err
	}
	s = &subject{name: o.name, base: "http://" + addrs[0] + "/v1", key: o.key, model: "m", pids: []int{p.PID()}}
	for _, h := range o.extra {
		s.extra = append(s.extra, fill(h))
	}
	if err := s.works(); err != nil {
		p.Kill()
		return nil, nil, err
	}
	return s, p.Kill, nil
}

// installed returns the folder of the installation, named by its pins.
func (o other) installed() (string, error) {
	text, err := os.ReadFile(filepath.Join(pins, o.lock))
	if err != nil {
		return "", errors.Join(err, errors.New("run it from the top of the checkout"))
	}
	sum := sha256.Sum256(text)
	dir, err := filepath.Abs(filepath.Join(".sluice/tools", "bench-"+strings.ToLower(o.name)+"-"+hex.EncodeToString(sum[:6])))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return dir, nil
	}
	fmt.Fprintf(os.Stderr, "installing %s (some minutes, once)\n", o.name)
	if err := os.CopyFS(dir, os.DirFS(pins)); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	cmd := exec.Command("sh", "-c", o.install)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install %s: %w\n%s", o.name, err, out)
	}
	return dir, os.WriteFile(filepath.Join(dir, "complete"), nil, 0o644)
}
