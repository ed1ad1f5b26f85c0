package memlimit

import (
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

func TestContainer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing can be read":  {nil, Unlimited},
		"no limit, version 2":  {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, Unlimited},
		"no limit, version 1":  {map[string]string{"proc/self/cgroup": "9:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, Unlimited},
		"container, version 2": {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20},
		"container, version 1, by the host's path": {map[string]string{
			"proc/self/cgroup": "12:cpu,cpuacct:/kubepods/pod1/c1\n9:memory:/kubepods/pod1/c1\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "268435456\n",
		}, 256 << 20},
		"a service of a slice with less": {map[string]string{
			"proc/self/cgroup": "0::/own.slice/sluice.service\n",
			"sys/fs/cgroup/own.slice/sluice.service/memory.max": "2147483648\n",
			"sys/fs/cgroup/own.slice/memory.max":                "1073741824\n",
		}, 1 << 30},
		"both versions mounted": {map[string]string{
			"proc/self/cgroup": "4:memory:/a\n1:name=systemd:/a\n0::/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "134217728\n",
		}, 128 << 20},
		"nonsense": {map[string]string{"proc/self/cgroup": "0::\nx\n0::/../..\n", "sys/fs/cgroup/memory.max": "-5\n"}, Unlimited},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := Container(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// The limit of this process is that of the machine on which tests run; a child
// shows what is set of it.
func TestApply(t *testing.T) {
	t.Parallel()
	if os.Getenv("MEMLIMIT_CHILD") != "" {
		_, set := os.LookupEnv(Variable)
		limit := Apply(set)
		fmt.Println(limit, debug.SetMemoryLimit(-1))
		return
	}
	for _, own := range []string{"", "123MiB"} {
		child := exec.Command(os.Args[0], "-test.run", "^TestApply$")
		child.Env = append(os.Environ(), "MEMLIMIT_CHILD=1")
		if own != "" {
			child.Env = append(child.Env, Variable+"="+own)
		}
		out, err := child.Output()
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(string(out), "\n")
		limit, set, _ := strings.Cut(line, " ")
		n, err := strconv.ParseInt(limit, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		want := int64(Unlimited)
		switch {
		case own != "":
			want = 123 << 20
		case n != Unlimited:
			want = n / 10 * 9
		}
		if set != strconv.FormatInt(want, 10) {
			t.Errorf("%s=%q: the limit is %s, and %s was set, want %d", Variable, own, limit, set, want)
		}
	}
}
