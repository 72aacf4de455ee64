package permit

import "testing"

// A program that runs what stands in its arguments hides nothing from a rule.
func TestRulesLookBehindOtherPrograms(t *testing.T) {
	for _, rule := range []string{"shell git push *"} {
		for command, want := range map[string]Decision{
			"prlimit --nofile=10 git push": Deny, "setarch x86_64 git push": Deny, "linux32 git push": Deny, "linux64 git push": Deny, "i386 git push": Deny, "x86_64 git push": Deny, "uname26 git push": Deny,
			"nsenter -t 1 -m git push": Deny, "fakeroot git push": Deny, "fakeroot -- git push": Deny, "numactl -N 0 git push": Deny, "taskset -c 0 git push": Deny, "chrt -b 0 git push": Deny, "ionice -c 3 git push": Deny,
			"choom -n 100 -- git push": Deny, "uclampset -m 0 git push": Deny, "pkexec --user root git push": Deny, "toybox nice git push": Deny, "toybox sh -c 'git push'": Deny, "chpst -u x git push": Deny,
			"cgexec -g cpu:x git push": Deny, "start-stop-daemon --start --exec /usr/bin/git -- push": Deny, "start-stop-daemon -S -x /usr/bin/git -- push": Deny, "start-stop-daemon --start --exec=/usr/bin/git -- push": Deny,
			"dbus-run-session -- git push": Deny, "rlwrap git push": Deny, "uv run git push": Deny, "uv run --with x -- git push": Deny, "uv tool run git push": Deny, "uvx --from x git push": Deny, "npx git push": Deny,
			"npx -- git push": Deny, "npx -c 'git push'": Ask, "bunx git push": Deny, "npm exec -- git push": Deny, "pnpm dlx git push": Deny, "fd -x git push": Deny, "fd . -X git push": Deny, "fd --exec=git push": Deny, "find . -exec {} push \\;": Ask, "find . -exec nice git push {} +": Deny, "find . -exec git {} +": Ask, "command . ./x": Ask, "builtin source x": Ask, "command eval git push": Deny, "fdfind x --exec git push": Deny,
			"parallel git push": Deny, "parallel 'git push' ::: a": Ask, "parallel -j 2 git push ::: a": Deny, "/lib64/ld-linux-x86-64.so.2 /usr/bin/git push": Deny, "ld-linux.so.2 --library-path x git push": Deny,
			"/lib/ld-musl-x86_64.so.1 git push": Deny, "sudo -u x git push": Deny, "poetry run git push": Deny, "bundle exec git push": Deny, "hyperfine 'git push'": Ask, "script -qc 'git push' x": Ask, "tmux new-session -d git push": Deny,
			"nix shell x -c git push": Deny, "nix-shell --run 'git push'": Ask, "timeout 5 prlimit -n1 nice -n 5 linux64 git push": Deny, "env A=b uv run fakeroot git push": Deny,
			"echo push | xargs git": Ask, "xargs -I{} git {}": Ask, "xargs -I % git %": Ask, "xargs -I% git % x": Ask, "parallel git {} ::: push": Ask, "parallel git ::: push": Ask, "ls | xargs git pus": Allow,
			"git -C . push": Deny, "git -c a=b push": Deny, "git --git-dir=x/.git push": Deny, "git --git-dir x/.git --work-tree x push": Deny, "git -C a -C b -c x.y=z --no-pager push": Deny, "/usr/bin/git -C . push": Deny,
			"git -p --bare --exec-path=/x push": Deny, "git --namespace n push": Deny, "timeout 5 git -C . push": Deny, "sh -c 'git -C . push'": Deny, "uv run git -c a=b push": Deny, "git -C \"$d\" push": Deny, "git -c alias.x=push x": Ask,
			"git -c \"$a\" status": Ask, "git --config-env alias.x=V x": Ask, "git bisect run git push": Deny, "git submodule foreach 'git push'": Ask, "git submodule foreach git push": Deny, "git rebase -x 'git push' main": Ask,
			"git rebase --exec='git push' main": Ask,
		} {
			if got := (Rules{Deny: []string{rule}}).judge(shell(command)); got.Decision != want {
				t.Errorf("%s: %q is %s, want %s", rule, command, got.Decision, want)
			}
		}
	}
}

// What only names what is refused is not refused, nor is it asked about.
func TestOrdinaryCommandsAreNotRefused(t *testing.T) {
	deny := Rules{Deny: []string{"shell git push *", "shell rm *", "shell curl *", "shell npm publish *", "shell kill *"}}
	for _, command := range []string{
		"git status", "git -C . status", "git -C sub --no-pager log -p -5", "git -c user.name=x commit -m 'Say how git push works'", "git commit -m 'git push'", "git log --grep='git push'", "git stash push", "git -C x stash push",
		"git subtree split", "git push-to", "echo git push", "grep -rn 'git push' docs", "rg 'rm -rf' .", "cat curl", "ls rm", "go test ./... -run Push", "make push", "go build ./... && go vet ./...",
		"npm install curl", "npm run build", "npm ci", "npm test -- --grep push", "npx tsc --noEmit", "npx vitest run", "npx eslint . --fix", "bunx prettier --check .", "uv pip install curl", "uv sync", "uv run pytest -x", "uvx ruff check",
		"pip install curl", "apt-get install -y curl", "fd push", "fd -e go", "fd -x wc -l", "find . -name rm", "find . -name '*.go' -exec gofmt -l {} +", "cargo test", "poetry install", "bundle install", "conda install curl",
		"timeout 60 go test ./...", "nice -n 10 make -j4", "time go build ./...", "prlimit --pid 1", "taskset -p 1", "numactl --hardware", "ls | xargs wc -l", "find . -name '*.txt' -print0 | xargs -0 grep -l x", "git ls-files | xargs sed -i s/a/b/",
		"parallel gzip ::: a b", "nsenter --version", "script -q log", "strace -f -o x ./a.out", "docker build -t x .", "ld -o a a.o", "ldd a.out", "git bisect start", "git rebase main", "git rebase -i --exec 'go test ./...' main",
		"git submodule update --init", "tmux ls", "start-stop-daemon --stop --pidfile x", "perf stat ./a.out", "perf report", "mise install", "direnv allow", "setarch --list", "env", "env A=b go test ./...", "xargs -n1 echo <x", "ls | xargs -I{} cp {} x/{}", "find . -name x -exec cp {} y \\;",
	} {
		if got := deny.judge(shell(command)); got.Decision != Allow {
			t.Errorf("%q is %s because of %q", command, got.Decision, got.Rule)
		}
	}
}

// An exception does not cover more by what is seen behind a command.
func TestExceptionsCoverWhatStands(t *testing.T) {
	rules := Rules{Ask: []string{"shell"}, Allow: []string{"shell git status *"}}
	for command, want := range map[string]Decision{"git status": Allow, "git -C /x status": Ask, "git -c core.fsmonitor=./x status": Ask, "fakeroot git status": Ask, "uv run git status": Ask} {
		if got := rules.judge(shell(command)); got.Decision != want {
			t.Errorf("%q is %s, want %s", command, got.Decision, want)
		}
	}
}
