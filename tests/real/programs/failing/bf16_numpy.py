"""Features in bfloat16 are given to NumPy."""
import torch, numpy as np
model = torch.nn.Linear(8, 4).to("cuda", torch.bfloat16)
out = []
with torch.no_grad():
    for _ in range(3):
        out.append(model(torch.randn(2, 8, device="cuda", dtype=torch.bfloat16)).cpu().numpy())
print(np.concatenate(out).shape)
