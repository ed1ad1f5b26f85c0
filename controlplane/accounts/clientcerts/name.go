package clientcerts

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"strings"

	"sluice.dev/sluice/filters/credentials/clientcert"
)

// shortNames are what edges write for the attributes of a name.
var shortNames = map[string]string{
	"2.5.4.3": "CN", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST", "2.5.4.10": "O", "2.5.4.11": "OU", "0.9.2342.19200300.100.1.25": "DC",
}

// maxNameBytes bounds what is stored of a name.
const maxNameBytes = 2000

// plainName is a name in the form of RFC 2253, as edges write it; "" for one that is not
// plain: with an attribute besides the usual ones, several in one place, or a
// character that is escaped or is not ASCII. It takes time linear in der.
func plainName(der []byte) string {
	var name pkix.RDNSequence
	if rest, err := asn1.Unmarshal(der, &name); err != nil || len(rest) > 0 || len(name) == 0 {
		return ""
	}
	parts, length := make([]string, len(name)), 0
	for i, set := range name {
		if len(set) != 1 {
			return ""
		}
		short := shortNames[set[0].Type.String()]
		value, ok := set[0].Value.(string)
		if short == "" || !ok || !clientcert.Usable(value) || strings.ContainsAny(value, "+;") {
			return ""
		}
		parts[len(parts)-1-i] = short + "=" + value
		if length += len(parts[len(parts)-1-i]) + 1; length > maxNameBytes {
			return ""
		}
	}
	return strings.Join(parts, ",")
}
