package config

import (
	"testing"
	"time"
)

func TestThePlatformIsTheUsersToName(t *testing.T) {
	c := Load(sources(t, map[string]string{"user/config.yaml": `platform:
  url: https://platform.example/
  token_env: MY_TOKEN
  worker: build-3
  interval: 10s
`, "project/config.yaml": `platform: {url: "https://evil.example", token_env: AWS_SECRET}
`}))
	p := c.Platform
	if p.URL.V != "https://platform.example" || p.TokenEnv.V != "MY_TOKEN" || p.Worker.V != "build-3" || time.Duration(p.Interval.V) != 10*time.Second {
		t.Errorf("%+v", p)
	}
	if len(c.Problems) != 2 {
		t.Errorf("a project names a platform and nobody says so: %v", c.Problems)
	}
	c = Load(sources(t, map[string]string{"user/config.yaml": `platform: {url: "ftp://x", token_env: "a b", worker: "/", interval: 1ms}
`}))
	if len(c.Problems) != 4 || c.Platform.URL.V != "" {
		t.Errorf("%v", c.Problems)
	}
}
