package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// machine is one on which some programs are installed.
type machine struct {
	programs string
	runs     bool // an engine answers
	starts   bool // a daemon answers once it is started
	broken   bool // it cannot be started
	root     bool
}

func (m machine) config(started *int) Config {
	return Config{
		Root: m.root, Patience: 1,
		Look: func(name string) (string, error) {
			if !strings.Contains(" "+m.programs+" ", " "+name+" ") {
				return "", errors.New("not found")
			}
			return "/usr/bin/" + name, nil
		},
		Answers: func(context.Context) error {
			if m.runs || *started > 0 && m.starts {
				return nil
			}
			return errors.New("nobody answers")
		},
		Start: func(string) error {
			*started++
			if m.broken {
				return errors.New("it is broken")
			}
			return nil
		},
	}
}

func TestEnsure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		machine
		started int
		err     string // part of it; empty: none
	}{
		"an engine runs":                 {machine{programs: "docker", runs: true}, 0, ""},
		"docker is not installed":        {machine{root: true}, 0, "apt-get install docker.io"},
		"it does not run, and we may":    {machine{programs: "docker dockerd", root: true, starts: true}, 1, ""},
		"it does not run, and we mayn't": {machine{programs: "docker dockerd", starts: true}, 0, "run this as root"},
		"only the client is installed":   {machine{programs: "docker", root: true}, 0, "nobody answers"},
		"the daemon does not start":      {machine{programs: "docker dockerd", root: true, broken: true}, 1, "it is broken"},
		"the daemon does not answer":     {machine{programs: "docker dockerd", root: true}, 1, "was started and does not answer"},
	} {
		started := 0
		err := Ensure(t.Context(), c.config(&started))
		if started != c.started || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: started %d times, %v", name, started, err)
		}
	}
}
