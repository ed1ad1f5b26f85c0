package app

import (
	"fmt"
	"testing"
)

func TestWhereProductsMayBe(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"": "<nil> true", "any": "<nil> true", "none": "&{[]} true", "10.0.0.0/8, fd00::/8": "&{[10.0.0.0/8 fd00::/8]} true", "10.0.0.0/99": "false"} {
		env := Environment{Lookup: func(string) (string, bool) { return value, true }}
		u, err := env.upstreams()
		got := fmt.Sprint(u, " ", err == nil)
		if err != nil {
			got = "false"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

func TestWhereTheServicesAre(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ upstream, listen, want string }{
		{"", "", "[127.0.0.1:18001]"},
		{"", "10.0.0.1:80", "[10.0.0.1:80]"},
		{"", ":80", "[127.0.0.1:80]"},
		{"", "0.0.0.0:80", "[127.0.0.1:80]"},
		{"", "[::]:80", "[127.0.0.1:80]"},
		{"10.0.0.1:80, api.internal:81", "0.0.0.0:80", "[10.0.0.1:80 api.internal:81]"},
		{"10.0.0.1:80,", "", `SLUICE_API_UPSTREAM: "" is not host:port`},
		{"10.0.0.1", "", `SLUICE_API_UPSTREAM: "10.0.0.1" is not host:port`},
		{"", "nowhere", `SLUICE_API_LISTEN: "nowhere" is not host:port`},
	} {
		all, err := setTo("SLUICE_API_UPSTREAM", c.upstream).With(map[string]string{"SLUICE_API_LISTEN": c.listen}).addresses()
		got := fmt.Sprint(all["api"])
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.upstream, c.listen, got, c.want)
		}
	}
}

func TestHostAndPortOfAURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://gw.example": "gw.example:80", "https://gw.example/": "gw.example:443", "http://127.0.0.1:8080": "127.0.0.1:8080", "gw": "", "http://[::1]": "[::1]:80",
	} {
		if got := hostPort(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
