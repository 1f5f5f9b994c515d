# Recurrent nets, which are cuDNN's: LSTM of two layers both ways, GRU, packed sequences, CTC.
import torch
from torch import nn

lstm = nn.LSTM(64, 128, num_layers=2, bidirectional=True, batch_first=True, dropout=0.1).cuda()
gru = nn.GRU(256, 64).cuda()
optimizer = torch.optim.RMSprop([*lstm.parameters(), *gru.parameters()])
for step in range(2):
    out, (hidden, cell) = lstm(torch.randn(8, 50, 64, device="cuda"))
    (gru(out)[0].sum() + hidden.sum()).backward()
    optimizer.step()
    optimizer.zero_grad()
lengths = torch.tensor([50, 40, 30])
packed = nn.utils.rnn.pack_padded_sequence(torch.randn(3, 50, 64, device="cuda"), lengths, batch_first=True)
out, _ = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
out.sum().backward()
scores = torch.randn(50, 3, 20, device="cuda", requires_grad=True)
targets = torch.randint(1, 20, (3, 10), device="cuda")
nn.functional.ctc_loss(scores.log_softmax(2), targets, lengths, torch.tensor([10, 9, 8])).backward()
print(tuple(out.shape))
