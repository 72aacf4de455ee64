package purse

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"rnix/internal/price"
	"rnix/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func join(t *Tree, up *Purse, limit Amount) *Purse {
	e := Entry{ID: types.NewUUID(), Limit: limit}
	if up != nil {
		e.Up = up.id
	}
	return t.Join(e)
}

func tokens(n int) Amount { return Amount{Tokens: n} }

// must reserves what has to be there at once.
func must(t *testing.T, p *Purse, w Want) *Claim {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, short, err := p.Reserve(ctx, w)
	for c == nil && short == nil { // an ended context may win over an answer that is there
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if c, short, err = p.Reserve(context.Background(), w); err != nil {
			t.Fatal(err)
		}
	}
	if c == nil {
		t.Fatalf("refused: %+v", short)
	}
	return c
}

func TestReservationIsTakenFromAllAboveOrFromNone(t *testing.T) {
	var tree Tree
	top := join(&tree, nil, tokens(100))
	mid := join(&tree, top, Amount{})
	low := join(&tree, mid, tokens(30))
	poor := join(&tree, mid, Amount{USD: 30})
	if _, short, _ := poor.Reserve(t.Context(), Want{Fixed: tokens(20), Answer: 20, Least: 20, Each: 2}); short == nil || short.ID != poor.id || short.Need.USD != 40 {
		t.Fatalf("%+v", short)
	}
	poor.Leave()
	if s := top.State(); s.Reserved != (Amount{}) || s.Used != (Amount{}) {
		t.Errorf("a refusal has taken something: %+v", s)
	}
	c := must(t, low, Want{Fixed: tokens(10), Answer: 20, Least: 1})
	if s := top.State(); s.Reserved.Tokens != 30 || mid.State().Reserved.Tokens != 30 {
		t.Errorf("%+v", s)
	}
	c.Settle(tokens(25))
	for _, p := range []*Purse{top, mid, low} {
		if s := p.State(); s.Used.Tokens != 25 || s.Reserved.Tokens != 0 {
			t.Errorf("%+v", s)
		}
	}
	low.Leave()
	if s := top.State(); s.Used.Tokens != 25 {
		t.Errorf("what an ended descendant has used is forgotten: %+v", s)
	}
	if tree.Has(low.id) || !tree.Has(mid.id) {
		t.Error("the wrong ones are kept")
	}
}

func TestAnswerIsMadeShorterBeforeItIsRefused(t *testing.T) {
	var tree Tree
	top := join(&tree, nil, tokens(1000))
	low := join(&tree, top, Amount{})
	want := Want{Fixed: tokens(100), Answer: 500, Least: 50}
	must(t, low, want).Settle(tokens(600))
	c := must(t, low, want)
	if c.Answer != 300 {
		t.Errorf("400 are left, 100 go to the prompt, and %d to the answer", c.Answer)
	}
	c.Settle(tokens(251)) // 149 are left, which is one too few for the least answer
	if c = must(t, low, want); c.Answer != 50 {
		t.Errorf("%d are left to the last answer", c.Answer)
	}
	c.Settle(tokens(150))
	if s := low.Spent(); s == nil || s.ID != top.id || s.Used.Tokens != 1001 {
		t.Errorf("%+v", s)
	}
}

func TestDollarsBoundTheAnswerToo(t *testing.T) {
	var tree Tree
	p := join(&tree, nil, Amount{USD: 1000})
	w := Want{Fixed: Amount{10, 100}, Answer: 500, Least: 50, Each: 3}
	if c := must(t, p, w); c.Answer != 300 || p.State().Reserved.USD != 1000 {
		t.Errorf("%+v %+v", c, p.State())
	} else {
		c.Settle(Amount{5, 800})
	}
	_, short, _ := p.Reserve(t.Context(), w) // not even the only one goes over a limit in dollars
	if short == nil || !short.USD || short.Need.USD != 250 {
		t.Errorf("%+v", short)
	}
}

func TestWhoHasABudgetForItselfAsksWhileAnythingIsLeft(t *testing.T) {
	var tree Tree
	p := join(&tree, nil, tokens(1))
	w := Want{Fixed: tokens(1000), Answer: 500, Least: 50}
	c := must(t, p, w)
	if c.Answer != 50 {
		t.Errorf("the answer may have %d tokens", c.Answer)
	}
	c.Settle(tokens(900))
	if _, short, _ := p.Reserve(t.Context(), w); short == nil || short.Need != (Amount{}) {
		t.Errorf("%+v", short)
	}
}

// Many find too few tokens left at once: they ask one after another, until nothing is left.
func TestLastTokensOfASharedBudgetAreUsedByOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tree Tree
		top := join(&tree, nil, tokens(900))
		w := Want{Fixed: tokens(1000), Answer: 500, Least: 50}
		var wg sync.WaitGroup
		asked, refused, atOnce := 0, 0, 0
		var mu sync.Mutex
		for range 10 {
			p := join(&tree, top, Amount{})
			wg.Go(func() {
				c, short, err := p.Reserve(t.Context(), w)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err != nil:
					t.Error(err)
				case short != nil:
					refused++
				default:
					if asked++; top.State().Reserved.Tokens != 1050 || c.Answer != 50 {
						atOnce++
					}
					c.Settle(tokens(400))
				}
			})
		}
		wg.Wait()
		if s := top.State(); asked != 3 || refused != 7 || atOnce != 0 || s.Used.Tokens != 1200 || s.Reserved != (Amount{}) {
			t.Errorf("%d have asked, %d were refused, %d beside another: %+v", asked, refused, atOnce, s)
		}
	})
}

func TestWhoWaitsGoesOnWhenOthersHaveSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tree Tree
		top := join(&tree, nil, tokens(100))
		big, small := join(&tree, top, Amount{}), join(&tree, top, Amount{})
		first := must(t, big, Want{Fixed: tokens(50), Answer: 10, Least: 10})
		order := make(chan string, 4)
		ask := func(who string, p *Purse, n int) {
			go func() {
				c, short, err := p.Reserve(t.Context(), Want{Fixed: tokens(n)})
				if err != nil || short != nil {
					t.Errorf("%s: %+v %v", who, short, err)
					return
				}
				order <- who
				c.Settle(tokens(1))
			}()
			synctest.Wait()
		}
		ask("big", big, 90)
		ask("small", small, 10) // it would fit, and waits its turn
		if len(order) != 0 {
			t.Errorf("%s did not wait", <-order)
		}
		ctx, cancel := context.WithCancel(t.Context())
		gave := make(chan error)
		go func() { _, _, err := small.Reserve(ctx, Want{Fixed: tokens(95)}); gave <- err }()
		synctest.Wait()
		cancel()
		if err := <-gave; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		first.Settle(tokens(2))
		if a, b := <-order, <-order; a != "big" || b != "small" {
			t.Errorf("%s went before %s", a, b)
		}
		synctest.Wait()
		if s := top.State(); s.Reserved != (Amount{}) || s.Used.Tokens != 4 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnswerThatNobodyCanBoundHasTheWholeTreeForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tree Tree
		top := join(&tree, nil, tokens(100))
		a, b := join(&tree, top, Amount{}), join(&tree, top, Amount{})
		c := must(t, a, Want{Alone: true})
		got := make(chan *Short)
		go func() {
			_, short, _ := b.Reserve(t.Context(), Want{Fixed: tokens(1)})
			got <- short
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Error("another one asked beside it")
		default:
		}
		c.Settle(tokens(150)) // it went over the limit, alone
		if short := <-got; short == nil || short.ID != top.id {
			t.Errorf("%+v", short)
		}
	})
}

func TestTopUpWakesWhoWaitsAndAddsToBothLimits(t *testing.T) {
	var tree Tree
	top := join(&tree, nil, Amount{10, price.Dollar})
	if got := top.Add(Amount{5, price.Dollar}); got != (Amount{15, 2 * price.Dollar}) {
		t.Errorf("%+v", got)
	}
}

func TestProcessThatGoesOnFindsWhatItsDescendantsHaveUsed(t *testing.T) {
	var tree Tree
	up := types.NewUUID()
	orphan := tree.Join(Entry{ID: types.NewUUID(), Up: up})
	orphan.Spend(tokens(7))
	c := must(t, orphan, Want{Alone: true, Fixed: tokens(3)})
	top := tree.Join(Entry{ID: up, Limit: tokens(20), Used: tokens(5), Shared: true})
	if s := top.State(); s.Used.Tokens != 12 || s.Reserved.Tokens != 3 {
		t.Fatalf("%+v", s)
	}
	c.Settle(tokens(4))
	top.Leave()
	orphan.Spend(tokens(1))
	again := tree.Join(Entry{ID: up, Limit: tokens(30), Used: tokens(999), Shared: true}) // it is still there
	if s := again.State(); s.Used.Tokens != 17 || s.Reserved.Tokens != 0 || s.Limit.Tokens != 30 {
		t.Errorf("%+v", s)
	}
	orphan.Leave()
	again.Leave()
	if len(tree.purses) != 0 {
		t.Errorf("%d purses are left", len(tree.purses))
	}
}

// Any number of processes in any tree, side by side: no limit of dollars is ever exceeded, one of tokens by one answer at
// most, everything that was used is counted in every purse above, and nobody waits for ever.
func TestSharedBudgetsAreNeverExceededByTwoAnswers(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var tree Tree
		type account struct {
			p    *Purse
			up   int
			used Amount // guarded by mu
			most int    // guarded by mu; tokens of one answer
		}
		root := join(&tree, nil, Amount{rapid.IntRange(1, 5000).Draw(r, "tokens"), price.USD(rapid.IntRange(0, 5000).Draw(r, "usd"))})
		all := []*account{{p: root, up: -1}}
		for range rapid.IntRange(1, 12).Draw(r, "processes") {
			up := rapid.IntRange(0, len(all)-1).Draw(r, "parent")
			limit := Amount{}
			if rapid.Bool().Draw(r, "limited") {
				limit = Amount{rapid.IntRange(0, 2000).Draw(r, "own tokens"), price.USD(rapid.IntRange(0, 2000).Draw(r, "own usd"))}
			}
			all = append(all, &account{p: join(&tree, all[up].p, limit), up: up})
		}
		seed := rapid.Uint64().Draw(r, "seed")
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range all[1:] {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(i)))
				for range 20 {
					w := Want{Fixed: Amount{rnd.IntN(100), price.USD(rnd.IntN(100))}, Answer: 1 + rnd.IntN(300), Least: 1 + rnd.IntN(40), Each: price.USD(rnd.IntN(3))}
					c, short, err := all[i+1].p.Reserve(context.Background(), w)
					if err != nil {
						r.Errorf("%v", err)
						return
					}
					if short != nil {
						continue
					}
					n := w.Answer
					if c.Answer > 0 {
						n = rnd.IntN(c.Answer + 1)
					}
					used := w.of(n)
					mu.Lock()
					for q := i + 1; q >= 0; q = all[q].up {
						all[q].used, all[q].most = all[q].used.plus(used), max(all[q].most, used.Tokens)
					}
					mu.Unlock()
					c.Settle(used)
				}
			})
		}
		wg.Wait()
		for i, a := range all {
			s := a.p.State()
			if s.Used != a.used || s.Reserved != (Amount{}) {
				r.Errorf("purse %d: %+v, used %+v", i, s, a.used)
			}
			if s.Limit.Tokens > 0 && s.Used.Tokens >= s.Limit.Tokens+max(a.most, 1) || s.Limit.USD > 0 && s.Used.USD > s.Limit.USD {
				r.Errorf("purse %d has gone over its limit: %+v", i, s)
			}
		}
		if len(tree.waiting) != 0 {
			r.Errorf("%d wait for ever", len(tree.waiting))
		}
	})
}

func BenchmarkUnlimited(b *testing.B) {
	var tree Tree
	p := join(&tree, nil, Amount{})
	for range 4 {
		p = join(&tree, p, Amount{})
	}
	for b.Loop() {
		if t, u := p.Limited(); t || u {
			b.Fatal("limited")
		}
		p.Spend(tokens(1))
	}
}

func BenchmarkReserve(b *testing.B) {
	var tree Tree
	p := join(&tree, nil, tokens(1<<50))
	for range 4 {
		p = join(&tree, p, Amount{})
	}
	for b.Loop() {
		c, _, _ := p.Reserve(context.Background(), Want{Fixed: tokens(10), Answer: 10})
		c.Settle(tokens(1))
	}
}

func TestWhoHasToWaitIsToldSoOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := join(new(Tree), nil, tokens(1000))
		told := 0
		want := Want{Fixed: tokens(600), Answer: 100, Least: 1, Waits: func() { told++ }}
		first, _, err := p.Reserve(t.Context(), want)
		if first == nil || err != nil || told != 0 {
			t.Fatalf("%v, %v, told %d times though there is room", first, err, told)
		}
		var second *Claim
		go func() { second, _, _ = p.Reserve(t.Context(), want) }()
		synctest.Wait()
		if told != 1 || second != nil {
			t.Fatalf("told %d times, %v", told, second)
		}
		first.Settle(tokens(100))
		synctest.Wait()
		if told != 1 || second == nil {
			t.Fatalf("told %d times, %v", told, second)
		}
		second.Settle(Amount{})
	})
}

// While a run of a history ends, the next one may begin, or try to: the budget is that of both, until the last of them leaves, and those above lose none.
func TestBudgetStaysUntilTheLastRunHasLeft(t *testing.T) {
	var tree Tree
	top := join(&tree, nil, tokens(100))
	e := Entry{ID: types.NewUUID(), Up: top.id}
	ending := tree.Join(e)
	next := tree.Join(e)
	ending.Leave()
	if !tree.Has(e.ID) {
		t.Fatal("it went with the run that ended")
	}
	below := tree.Join(Entry{ID: types.NewUUID(), Up: e.ID})
	below.Spend(tokens(7))
	if s := top.State(); s.Used.Tokens != 7 {
		t.Errorf("what is below is not counted above: %+v", s)
	}
	top.Leave()
	next.Leave()
	if !tree.Has(top.id) {
		t.Error("the budget above went, and one is below it")
	}
	below.Leave()
	below.Leave() // once too often takes nothing from others
	if len(tree.purses) != 0 || top.kids != 0 {
		t.Errorf("left are %d, and %d below the top", len(tree.purses), top.kids)
	}
}
