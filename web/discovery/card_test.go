package discovery

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
)

// The card is one of A2A 0.3 and of 1.0: the official library reads the latter,
// and no field that the former requires is missing.
func TestTheCardIsOfBothVersions(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(NewCard(Build(version(t), at, engines()), "1.2.3"))
	if err != nil {
		t.Fatal(err)
	}
	var card a2a.AgentCard
	if err := json.Unmarshal(text, &card); err != nil {
		t.Fatal(err)
	}
	if len(card.SupportedInterfaces) != 1 || card.SupportedInterfaces[0].URL != "https://gw.example/mcp" || card.SupportedInterfaces[0].ProtocolVersion != "1.0" ||
		len(card.SecuritySchemes) != 1 || card.Version != "1.2.3" {
		t.Errorf("%+v", card)
	}
	has := func(id string) bool {
		return slices.ContainsFunc(card.Skills, func(s a2a.AgentSkill) bool { return s.ID == id })
	}
	if !has("streams") || !has("webhooks") || has("phone") || has("rtmp") || has("oauth") {
		t.Errorf("%+v", card.Skills)
	}
	if scheme, ok := card.SecuritySchemes["bearer"].(a2a.HTTPAuthSecurityScheme); !ok || scheme.Scheme != "bearer" {
		t.Errorf("%#v", card.SecuritySchemes["bearer"])
	}
	var older map[string]any
	if err := json.Unmarshal(text, &older); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"protocolVersion", "name", "description", "url", "version", "capabilities", "defaultInputModes", "defaultOutputModes", "skills", "preferredTransport"} {
		if older[name] == nil || older[name] == "" {
			t.Errorf("0.3 requires %s", name)
		}
	}
}
