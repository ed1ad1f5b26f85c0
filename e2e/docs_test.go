package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// example is a piece of a page that can be run.
type example struct {
	page, language, text string
	line                 int
	beside               map[string][]byte // files that it takes for granted
}

// examples are those of the documentation in a language, page by page.
func examples(t *testing.T, language string) map[string][]example {
	t.Helper()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	found := map[string][]example{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		page := strings.TrimSuffix(filepath.Base(f), ".md")
		var in *example
		for i, line := range strings.Split(string(b), "\n") {
			switch {
			case in == nil && line == "```"+language:
				in = &example{page: page, language: language, line: i + 1}
			case in != nil && line == "```":
				found[page] = append(found[page], *in)
				in = nil
			case in != nil:
				in.text += line + "\n"
			}
		}
	}
	return found
}

// reader is the environment of someone who has followed the quick start so far.
func (s *stack) reader(t *testing.T) []string {
	t.Helper()
	bin := need(t, "SLUICE_BIN")
	env := []string{"SLUICE_STATE_DIR=" + s.dir}
	for _, kv := range os.Environ() {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok {
			kv = "PATH=" + filepath.Dir(bin) + ":" + standIns(t) + ":" + path
		}
		if !strings.HasPrefix(kv, "SLUICE_") {
			env = append(env, kv)
		}
	}
	for name, value := range s.dev {
		env = append(env, name+"="+value)
	}
	return env
}

// standIns is a folder with a curl for machines that have none: the part of it
// that the pages use, in Python. It is empty where there is a curl.
func standIns(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := exec.LookPath("curl"); err == nil {
		return dir
	}
	b, err := os.ReadFile("clients/curl/curl.py")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "curl"), b, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// run runs a program in an empty folder and returns what it says.
func (x example) run(t *testing.T, env []string, file string, program ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range x.beside {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(x.text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program[0], append(program[1:], file)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, time.Second
	out, err := cmd.CombinedOutput()
	for _, key := range regexp.MustCompile(`slk_\w{20,}`).FindAllString(string(out), -1) {
		keepSecret("key", key)
	}
	if err != nil {
		t.Fatalf("docs/%s.md:%d: %v\n%s\n%s", x.page, x.line, err, x.text, out)
	}
	return string(out)
}

// Each box marked sh runs as it stands, in the order of its page, and says what the
// lines that begin with "# =>" promise.
func TestDocsExamples(t *testing.T) {
	s := theStack(t)
	pages := examples(t, "sh")
	if len(pages) < 3 {
		t.Fatalf("only %d pages have examples", len(pages))
	}
	env := s.reader(t)
	for _, page := range slices.Concat(withStack, withMedia) {
		delete(pages, page)
	}
	for page, list := range pages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			for _, x := range list {
				x.keepsWord(t, env)
			}
		})
	}
}

// The boxes of pages that a gateway alone shows work there too.
func TestDocsExamplesOfAGateway(t *testing.T) {
	t.Parallel()
	s := lentGateway(t)
	env, pages := s.reader(t), 0
	for page, list := range examples(t, "sh") {
		b, err := os.ReadFile("../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		title, _, _ := strings.Cut(string(b), "\n")
		if slices.Contains(withStack, page) || strings.HasSuffix(title, "<!-- platform -->") {
			continue
		}
		pages++
		for _, x := range list {
			x.keepsWord(t, env)
		}
	}
	if pages < 8 {
		t.Errorf("only %d pages have examples", pages)
	}
}

// withMedia are pages whose boxes need the engines and tools of the media product.
var withMedia = []string{"captions", "engines", "media", "moq", "phone", "vision", "voice"}

// The boxes of those pages run on the stack that has all engines, beside the files that
// they name; VIDEO is the id of a video.
func TestDocsExamplesOfMedia(t *testing.T) {
	t.Parallel()
	s := studio(t)
	sign, err := os.ReadFile("testdata/sign.png")
	if err != nil {
		t.Fatal(err)
	}
	sound := talk(t)
	film := filmOf(t, sound)
	video := post(t, s.url("/v1/vod/upload?title=Talk"), s.dev["SLUICE_API_KEY"], "video/mp4", bytes.NewReader(film))
	wantStatus(t, video, http.StatusCreated)
	id := into[struct{ ID string }](t, video).ID
	eventually(t, "the video is ready", func() error {
		if r := call(t, http.MethodGet, s.url("/v1/vod/"+id), s.dev["SLUICE_API_KEY"], nil); !strings.Contains(r.body, `"status":"ready"`) {
			return fmt.Errorf("%d %s", r.StatusCode, r.body)
		}
		return nil
	})
	env := append(s.reader(t), "VIDEO="+id)
	all := examples(t, "sh")
	for _, page := range withMedia {
		if len(all[page]) == 0 {
			t.Errorf("docs/%s.md has no box", page)
		}
		for _, x := range all[page] {
			x.beside = map[string][]byte{"talk.mp3": sound, "film.mp4": film, "photo.jpg": sign}
			x.keepsWord(t, env)
		}
	}
}

// withStack are pages whose boxes run one after another, in a stack of their own.
var withStack = []string{"quickstart", "client-certificates"}

// keepsWord runs a box and finds in its output what its lines "# => " promise.
func (x example) keepsWord(t *testing.T, env []string) {
	t.Helper()
	out := x.run(t, env, "example.sh", "bash", "-euo", "pipefail")
	for line := range strings.Lines(x.text) {
		if want, ok := strings.CutPrefix(strings.TrimSpace(line), "# => "); ok && !strings.Contains(out, want) {
			t.Errorf("docs/%s.md:%d: no %q in\n%s", x.page, x.line, want, out)
		}
	}
}

// The boxes of the quick start, one after another as a reader runs them, put a service
// behind a gateway of its own.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	list := examples(t, "sh")["quickstart"]
	if len(list) < 5 {
		t.Fatalf("only %d boxes", len(list))
	}
	s := gatewayAlone(t) // the account's window is its own
	whole := list[0]
	for _, x := range list[1:] {
		whole.text += x.text
	}
	whole.text = strings.ReplaceAll(whole.text, "http://127.0.0.1:3000", ownService(t))
	whole.keepsWord(t, s.reader(t))
}

// The clients to copy work as they stand.
func TestDocsClients(t *testing.T) {
	s := theStack(t)
	env := s.reader(t)
	for language, c := range map[string]struct {
		file    string
		program []string
	}{"python": {"main.py", []string{"python3"}}, "go": {"main.go", []string{"go", "run"}}} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			list := examples(t, language)["clients"]
			if len(list) != 1 {
				t.Fatalf("%d programs", len(list))
			}
			list[0].checkClient(t, list[0].run(t, env, c.file, c.program...))
		})
	}
}

// checkClient holds a client to what it must have said.
func (x example) checkClient(t *testing.T, out string) {
	t.Helper()
	for _, want := range []string{"created strm_", "there are ", "refused invalid_request", "protocol"} {
		if !strings.Contains(out, want) {
			t.Errorf("docs/%s.md:%d: no %q in\n%s", x.page, x.line, want, out)
		}
	}
}

// The gateway serves every page, and every link on one leads somewhere.
func TestDocsServed(t *testing.T) {
	s := theStack(t)
	anchor := regexp.MustCompile(`(?:href|src)="(/[^"#]*)(?:#[^"]*)?"`)
	todo, seen, pages := []string{"/docs/"}, map[string]bool{"/docs/": true}, 0
	for len(todo) > 0 {
		path := todo[0]
		todo = todo[1:]
		r := call(t, http.MethodGet, s.url(path), "", nil, "Accept", "text/html,*/*;q=0.8")
		if r.StatusCode != 200 {
			t.Errorf("%s: %d", path, r.StatusCode)
			continue
		}
		if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
			continue
		}
		pages++
		if policy := r.Header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: policy %q", path, policy)
		}
		for _, m := range anchor.FindAllStringSubmatch(r.body, -1) {
			if !seen[m[1]] {
				seen[m[1]] = true
				todo = append(todo, m[1])
			}
		}
	}
	if pages < 40 { // the error codes have a page each
		t.Errorf("only %d pages", pages)
	}
	for _, name := range []string{"quickstart", "concepts", "security", "errors", "webhooks"} {
		if !seen["/docs/"+name] {
			t.Errorf("no link leads to /docs/%s", name)
		}
	}
}
