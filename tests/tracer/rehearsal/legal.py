"""Programs that mix devices as a GPU allows: each gives what it gives without one."""

from __future__ import annotations

from tests.tracer.rehearsal.programs import Legal

NET = "torch.manual_seed(0); net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))\n"
STEPS = """\
for _ in range(3):
    o.zero_grad(); loss = net(there).square().sum(); loss.backward(); o.step()
result = [loss.detach().cpu(), *(p.detach().cpu() for p in net.parameters())]
"""

LEGAL = (
    Legal("scalar of the host", "result = (there + torch.tensor(2.)).cpu()"),
    Legal("scalar of the host in place", "there.mul_(torch.tensor(2.)); result = there.cpu()"),
    Legal("scalar of the host, double", "r = there + torch.tensor(2., dtype=torch.double);"
          " result = r.cpu()"),
    Legal("number of Python", "result = (2 * there - 1 / (there + 1)).cpu()"),
    Legal("clamp by numbers", "result = (there * torch.tensor(9.)).clamp(0, 5).cpu()"),
    Legal("where with scalars", "result = torch.where(there > 0, torch.tensor(3.), there).cpu()"),
    Legal("where with a number", "result = torch.where(there > 2, there, 0.).cpu()"),
    Legal("filled by a scalar of the host", "there[0] = torch.tensor(4.); result = there.cpu()"),
    Legal("masked_fill by a scalar of the host",
          "result = there.masked_fill(there > 0, torch.tensor(4.)).cpu()"),
    Legal("rows by indices of the host", "result = there[torch.tensor([2, 0])].cpu()"),
    Legal("rows by a mask of the host", "result = there[torch.tensor([True, False, True])].cpu()"),
    Legal("put into a host table by indices of the GPU",
          "here[torch.tensor([2, 0]).to(G)] = 2.; here[:, torch.tensor([1]).to(G)] = here[:, :1];"
          " result = here"),
    Legal("put into a host table by a mask of the GPU", "here[there > 0] = 3.; result = here"),
    Legal("added into a host table by indices of the GPU",
          "here.index_put_((torch.tensor([2, 2]).to(G),), here[:2].clone(), accumulate=True);"
          " result = here"),
    Legal("a host table with rows put by indices of the GPU",
          "result = torch.index_put(here, (torch.tensor([1]).to(G),), torch.zeros(3))"),
    Legal("put by indices of the host",
          "there[torch.tensor([1])] = there[:1] * 7; result = there.cpu()"),
    Legal("rows by a list", "result = there[[0, 2], 1:].cpu()"),
    Legal("slice set from the host", "there[0, :2] = torch.tensor([5., 6.]); result = there.cpu()"),
    Legal("sizes are compared", "result = torch.tensor(torch.is_same_size(here, there))"),
    Legal("copy_ from the host", "there.copy_(here * 3); result = there.cpu()"),
    Legal("copy_ to the host", "here.copy_(there * 3); result = here"),
    Legal("copied into a row from the host",
          "result = torch.select_scatter(there, torch.zeros(3), 0, 1).cpu()"),
    Legal("copied into a slice of the host",
          "result = torch.slice_scatter(here, there[:1] * 2, 0, 1, 2)"),
    Legal("copied into a diagonal", "result = there.diagonal_scatter(torch.zeros(3)).cpu()"),
    Legal("gradients of what such a copy is put into", """\
          a, b = there.requires_grad_(), torch.zeros(3)
          (torch.select_scatter(a, b, 0, 1) * torch.arange(3., device=G)).sum().backward()
          result = a.grad.cpu()
          """),
    Legal("resized like a tensor of the host", """\
          there.resize_as_(torch.zeros(2, 2)); here.resize_as_(there)
          result = [there.cpu(), here]
          """),
    Legal("median and size of truth values", """\
          if "cuda" in G:
              found = [(there > 0).median(), (there > 0).abs(), (there > 0).trace()]
          else:
              found = [torch.tensor(True), torch.ones(3, 3) > 0, torch.tensor(3)]
          result = [each.cpu() for each in found]
          """),
    Legal("narrow matrices of nothing",
          "result = [each.cpu() for each in torch.linalg.svd(there[:0, :0].half())]"),
    Legal("truth values summed by index", """\
          t, index = there > 0, torch.zeros(1, 3).long().to(G)
          result = t.scatter_reduce(0, index, t, "sum").cpu()
          """),
    Legal("numbers between one of the host and one of a GPU",
          "result = torch.linspace(torch.tensor(0.), there.sum(), 4, device=G).cpu()"),
    Legal("CTC loss of the host, targets on the GPU", """\
          result = F.ctc_loss(here[:, None].log_softmax(-1), torch.ones(1, 1).long().to(G),
                              torch.tensor([3]), torch.tensor([1]))
          """),
    Legal("CTC loss with lengths in lists", """\
          result = F.ctc_loss(there[:, None].log_softmax(-1), torch.ones(1, 1).long().to(G), [3],
                              (1,)).cpu()
          """),
    Legal("copy_ between GPUs", "other.copy_(there * 3); result = other.to(G).cpu()"),
    Legal("copy_ with another type and shape",
          "there.copy_(torch.arange(3)); result = there.half().cpu()"),
    Legal("to, cuda, cpu and back", """\
          a = here.to(G, torch.float64).to(G1).cpu().to(device=G).to(other).type_as(here)
          result = [a, here.to(G, copy=True).cpu(), there.to(torch.int32).cpu()]
          """),
    Legal("gradient over devices", """\
          x = torch.arange(3., requires_grad=True); y = (x.to(G) * 2).to(G1) * 3
          (y.cpu() * x).sum().backward(); result = x.grad
          """),
    Legal("a model over two GPUs", NET + """\
          a, b = net[0].to(G), net[2].to(G1)
          b(a(there).relu().to(G1)).sum().backward()
          result = [p.grad.cpu() for p in net.parameters()]
          """.replace("          ", "")),
    Legal("data swapped to another device", """\
          p = nn.Parameter(here); kept = p; p.data = p.data.to(G) * 2
          result = [kept.detach().cpu(), torch.tensor(kept.device == torch.device(G))]
          """),
    Legal("state dict over devices", NET + """\
copied = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).to(G)
copied.load_state_dict(net.state_dict())
f = io.BytesIO(); torch.save(copied.state_dict(), f); f.seek(0)
net.load_state_dict(torch.load(f, map_location=G1))
result = [net(here).detach(), copied(there).detach().cpu()]
"""),
    Legal("SGD with momentum", NET + "net.to(G); o = torch.optim.SGD(net.parameters(), .1, .9)\n"
          + STEPS),
    Legal("AdamW, steps counted on the host",
          NET + "net.to(G); o = torch.optim.AdamW(net.parameters(), .1, foreach=False)\n" + STEPS),
    Legal("AdamW, foreach",
          NET + "net.to(G); o = torch.optim.AdamW(net.parameters(), .1, foreach=True)\n" + STEPS),
    Legal("AdamW, fused",
          NET + "net.to(G); o = torch.optim.AdamW(net.parameters(), .1, fused=True)\n" + STEPS),
    Legal("AdamW over two GPUs, foreach", NET + """\
net[0].to(G); net[2].to(G1); o = torch.optim.AdamW(net.parameters(), .1, foreach=True)
for _ in range(2):
    o.zero_grad(); net[2](net[0](there).to(G1)).square().sum().backward(); o.step()
result = [p.detach().cpu() for p in net.parameters()]
"""),
    Legal("gradients clipped over two GPUs", NET + """\
net[0].to(G); net[2].to(G1); net[2](net[0](there).to(G1)).square().sum().backward()
total = nn.utils.clip_grad_norm_(net.parameters(), 0.1)
result = [total.cpu(), *(p.grad.cpu() for p in net.parameters())]
"""),
    Legal("optimizer state loaded from the host", NET + """\
net.to(G); o = torch.optim.Adam(net.parameters(), .1)
net(there).sum().backward(); o.step(); f = io.BytesIO(); torch.save(o.state_dict(), f); f.seek(0)
o.load_state_dict(torch.load(f, map_location="cpu"))
""" + STEPS),
    Legal("scaled gradients", NET + """\
net.to(G); o = torch.optim.SGD(net.parameters(), .1)
scaler = torch.amp.GradScaler(torch.device(G).type, init_scale=8.)
for _ in range(2):
    o.zero_grad(); scaler.scale(net(there).square().sum()).backward()
    scaler.unscale_(o); nn.utils.clip_grad_norm_(net.parameters(), 1.); scaler.step(o)
    scaler.update()
result = [p.detach().cpu() for p in net.parameters()]
"""),
    Legal("autocast to bfloat16", NET + """\
net.to(G)
with torch.autocast(torch.device(G).type, torch.bfloat16):
    y = net(there)
y.float().sum().backward()
result = [torch.tensor(y.dtype == torch.bfloat16), net[0].weight.grad.cpu().round(decimals=1)]
"""),
    Legal("loader with pinned memory", """\
          data = torch.utils.data.TensorDataset(torch.arange(12.).view(6, 2), torch.arange(6))
          result = []
          for x, y in torch.utils.data.DataLoader(data, 2, pin_memory="cuda" in G):
              x, y = x.to(G, non_blocking=True), y.to(G, non_blocking=True)
              result.append((x * y[:, None]).cpu())
          """),
    Legal("a packed batch, padded again", """\
          x = torch.arange(24.).view(2, 4, 3).to(G).requires_grad_()
          packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([2, 4]), True, False)
          padded, lengths = nn.utils.rnn.pad_packed_sequence(packed, True, total_length=5)
          padded.square().sum().backward()
          result = [padded.detach().cpu(), lengths, x.grad.cpu(),
                    nn.utils.rnn.pad_sequence([x[0], x[1, :2]]).detach().cpu()]
          """),
    Legal("random numbers of a seed in place", """\
          a = torch.empty(3, device=G).fill_(2.); torch.manual_seed(1); b = torch.zeros_like(a)
          result = [a.cpu(), b.add_(a).cpu(), torch.tensor(a.sum().item())]
          """),
    Legal("code of a script asks for the device", """\
          script = torch.jit.CompilationUnit('''
          def f(x, y):
              if x.device != y.device:
                  y = y.to(x.device)
              return (x + y).to("cpu"), x.cpu(), x.is_cuda == y.is_cuda
          ''')
          result = [*script.f(there, here)[:2], torch.tensor(script.f(there, here)[2])]
          """),
    Legal("a new tensor of a size, and of values", """\
          made = [there.new(torch.Size([2, 5])), there.new(2, 5), there.new((2, 5)), there.new([1])]
          result = [each.shape.numel() + torch.zeros(2) for each in made] + [made[2].cpu()]
          """),
    Legal("the type and device of another", """\
          wide = here.double()
          result = [(each.type_as(there) + there).cpu() for each in (here, wide, wide.to(G))]
          result += [there.type_as(wide) + wide]
          """),
)  # fmt: skip
